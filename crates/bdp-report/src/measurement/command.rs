//! Follow-up commands, as typed.

use bdp_model::measurement::{MeasureRequest, Measurement, options};

use crate::grid::tame;

/// Returns a word quoted for a shell if necessary.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@#".contains(c);
    // A leading `#` starts a comment.
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns the command with the store's path unless it is the default.
pub(crate) fn in_store(command: &str, store: Option<&str>) -> String {
    match store {
        Some(store) => format!("{command} --store {}", quote(&tame(store))),
        None => command.to_owned(),
    }
}

/// Returns the command that repeats the measurement and compares it with this run. A token typed on the command line is replaced by a file name.
pub(crate) fn against(m: &Measurement, run: &str, store: Option<&str>) -> String {
    again(m, &format!("--baseline {run}"), store)
}

/// Returns the command that repeats the measurement several times.
pub(crate) fn several(m: &Measurement, runs: u32, store: Option<&str>) -> String {
    again(m, &format!("--runs {runs}"), store)
}

fn again(m: &Measurement, option: &str, store: Option<&str>) -> String {
    let mut words = match &m.request.ssh {
        // The request has the resolved address and port, not what was typed.
        Some(ssh) => {
            let host = ssh.data_host.as_ref().map(|host| quote(&tame(host)) + " ").unwrap_or_default();
            vec![format!("bdp measure {host}--ssh {}", quote(&tame(&ssh.destination)))]
        }
        None => {
            let target = m.request.url.as_deref().unwrap_or(&m.request.host);
            vec![format!("bdp measure {}", quote(&tame(target)))]
        }
    };
    words.extend(typed(&m.request));
    words.push(option.to_owned());
    in_store(&words.join(" "), store)
}

/// Returns the options of `bdp measure` for this request, without defaults and without those at the start of the command.
pub(crate) fn typed(request: &MeasureRequest) -> impl Iterator<Item = String> {
    options::given(request)
        .filter(|option| !option.is_head)
        .map(|option| option.text(|text| quote(&tame(text))))
}
