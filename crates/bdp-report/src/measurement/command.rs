//! Commands to go on with, as one types them.

use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::options;

use crate::grid::tame;

/// A word as a shell takes it back, in quotes where it needs them.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@#".contains(c);
    // A word that begins so is a comment.
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The command with the store named where it is not the default one.
pub(crate) fn in_store(command: &str, store: Option<&str>) -> String {
    match store {
        Some(store) => format!("{command} --store {}", quote(&tame(store))),
        None => command.to_owned(),
    }
}

/// The command that measures the same again and compares it with this run. A token that was typed is a secret: its place is held by a file.
pub(crate) fn against(m: &Measurement, run: &str, store: Option<&str>) -> String {
    again(m, &format!("--baseline {run}"), store)
}

/// The command that measures the same several times.
pub(crate) fn several(m: &Measurement, runs: u32, store: Option<&str>) -> String {
    again(m, &format!("--runs {runs}"), store)
}

fn again(m: &Measurement, option: &str, store: Option<&str>) -> String {
    let mut words = match &m.request.ssh {
        // The request's address and port are those that came out, not what was asked.
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

/// The options of `bdp measure` that made this request, without the defaults and what its command begins with.
pub(crate) fn typed(request: &MeasureRequest) -> impl Iterator<Item = String> {
    options::given(request)
        .filter(|option| !option.is_head)
        .map(|option| option.text(|text| quote(&tame(text))))
}
