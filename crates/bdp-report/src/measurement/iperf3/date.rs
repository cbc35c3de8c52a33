//! A date as iperf3 writes it.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// 1970 began with a Thursday.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// `Thu, 01 Jan 1970 00:00:00 GMT` (RFC 9110, section 5.6.7).
pub(super) fn http(unix_s: u64) -> String {
    let (mut day, of_day) = (unix_s / 86_400, unix_s % 86_400);
    let weekday = DAYS[(day % 7) as usize];
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = |year| if leap(year) { 366 } else { 365 };
    while day >= length(year) && year < 9999 {
        day -= length(year);
        year += 1;
    }
    let mut month = 0;
    let days = |month| match month {
        1 if leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    while month < 11 && day >= days(month) {
        day -= days(month);
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let name = MONTHS[month];
    format!("{weekday}, {:02} {name} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

#[cfg(test)]
mod tests {
    use super::http;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @SECONDS -R
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_200, "Fri, 01 Mar 2024 00:00:00 GMT"),
            (1_795_299_066, "Sat, 21 Nov 2026 22:11:06 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http(seconds), text);
        }
    }
}
