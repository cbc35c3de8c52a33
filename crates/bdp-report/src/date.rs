//! Calendar dates, UTC.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// 1970 began on a Thursday.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Formats milliseconds since 1970 as UTC to the second: `2026-01-01T00:00:00Z` (RFC 3339, ISO 8601).
pub fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}T{}Z", time(seconds))
}

/// Formats seconds since 1970 as `Thu, 01 Jan 1970 00:00:00 GMT` (RFC 9110, section 5.6.7).
pub(crate) fn http_date(unix_s: u64) -> String {
    let days = unix_s / 86_400;
    let (year, month, day) = date(days);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year} {} GMT", time(unix_s))
}

fn time(unix_s: u64) -> String {
    let of_day = unix_s % 86_400;
    format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Returns year, month and day (from 1) of the days since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in March, so that the
    // leap day is the last of its year; an era is 400 of them.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_agrees_with_date() {
        // As `date -u -d @SECONDS +%FT%TZ` prints them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds * 1000 + 999), text);
        }
        assert!(utc(u64::MAX).ends_with('Z'));
    }

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
            assert_eq!(http_date(seconds), text);
        }
    }
}
