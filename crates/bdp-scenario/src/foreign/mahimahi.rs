//! Imports traces and commands of mahimahi: `mm-delay 20 mm-loss uplink 0.01 mm-link up.trace down.trace`.

use super::draft::{Draft, ImportError, Imported, quoted};
use super::shell;
use super::words::of_share;
use bdp_model::units::Probability;

/// Maximum delay of each command, milliseconds.
const LONGEST_MS: u64 = 3_600_000;

/// Imports a path with a trace per direction, or of the first one. Its queues are unlimited, as in mahimahi.
pub fn trace(files: &[&str]) -> Result<Imported, ImportError> {
    if files.is_empty() || files.len() > 2 {
        return Err(ImportError::new("give one or two traces: from the first host to the second, and back"));
    }
    let mut draft = Draft::default();
    for (keys, file) in draft.directions.iter_mut().zip(files) {
        keys.set("rate", format!("{{ trace = {} }}", quoted(file)));
        keys.set("limit", "\"none\"".to_owned());
    }
    Ok(draft.finish("Imported from a trace of mahimahi"))
}

/// Imports nested commands as typed in a shell. The first host is inside: what it sends is the uplink.
pub fn commands(text: &str) -> Result<Imported, ImportError> {
    let mut draft = Draft::default();
    let mut delay_ms = 0u64;
    let typed: Vec<String> = shell::commands(text)?.concat();
    let mut words = typed.iter().map(String::as_str).filter(|word| *word != "--").peekable();
    while let Some(word) = words.next() {
        match word {
            "mm-delay" => {
                let ms = words.next().and_then(|ms| ms.parse::<u64>().ok()).filter(|ms| *ms <= LONGEST_MS);
                delay_ms += ms.ok_or_else(|| ImportError::new("mm-delay needs a delay in ms, up to 1h"))?;
            }
            "mm-loss" => {
                let way = words.next().and_then(|way| ["uplink", "downlink"].iter().position(|w| *w == way));
                let share = words.next().and_then(|share| share.parse().ok()).and_then(Probability::new);
                let (Some(way), Some(share)) = (way, share) else {
                    return Err(ImportError::new(
                        "mm-loss needs a direction and a fraction: mm-loss uplink 0.01",
                    ));
                };
                let keys = &mut draft.directions[way];
                if keys.has("loss") {
                    draft.left_out.push("mm-loss: the second of two in one direction".to_owned());
                }
                draft.directions[way].set("loss", format!("\"{}\"", of_share(share)));
            }
            "mm-link" => {
                let mut files = Vec::new();
                while let Some(next) = words
                    .next_if(|next| next.starts_with("--") || (files.len() < 2 && !next.starts_with("mm-")))
                {
                    match next.strip_prefix("--") {
                        None => files.push(next),
                        Some(option) => option_of_link(option, &mut draft)?,
                    }
                }
                if let Some(unset) = files.iter().find(|file| file.starts_with('$')) {
                    return Err(ImportError::new(format!(
                        "'{}' is a shell variable that is not set here; give the trace",
                        unset.escape_debug()
                    )));
                }
                let [up, down] = files.as_slice() else {
                    return Err(ImportError::new("mm-link needs two traces: mm-link UPLINK DOWNLINK"));
                };
                for (keys, file) in draft.directions.iter_mut().zip([up, down]) {
                    keys.set("rate", format!("{{ trace = {} }}", quoted(file)));
                    if !keys.has("limit") {
                        keys.set("limit", "\"none\"".to_owned());
                    }
                }
            }
            other => {
                // The program inside is not part of the path.
                let shown: String = other.chars().take(40).collect();
                draft.left_out.push(format!(
                    "'{}' and all after it; use 'bdp lab exec' to run programs",
                    shown.escape_debug()
                ));
                break;
            }
        }
    }
    if delay_ms > 0 {
        draft.directions.iter_mut().for_each(|keys| keys.set("delay", format!("\"{delay_ms}ms\"")));
    }
    Ok(draft.finish("Imported from commands of mahimahi"))
}

fn option_of_link(option: &str, draft: &mut Draft) -> Result<(), ImportError> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let way = usize::from(name.starts_with("downlink"));
    let value = value.trim_matches(['"', '\'']);
    match name.trim_start_matches("uplink-").trim_start_matches("downlink-") {
        "queue" if ["infinite", "droptail"].contains(&value) => {}
        "queue-args" => {
            for (what, number) in value.split(',').filter_map(|pair| pair.trim().split_once('=')) {
                let number: u64 = number
                    .parse()
                    .map_err(|_| ImportError::new(format!("'{value}' is not packets=N or bytes=N")))?;
                match what {
                    "packets" => draft.directions[way].set("limit", number.max(1).to_string()),
                    "bytes" => draft.directions[way].set("limit", format!("\"{}B\"", number.max(1504))),
                    other => draft.left_out.push(format!("mm-link: {other} of its queue")),
                }
            }
        }
        "log"
        | "meter-uplink"
        | "meter-downlink"
        | "meter-uplink-delay"
        | "meter-downlink-delay"
        | "meter-all" => {}
        "once" => draft.left_out.push("mm-link --once: write loop = false beside the traces".to_owned()),
        _ => draft.left_out.push(format!("mm-link --{}", option.chars().take(60).collect::<String>())),
    }
    Ok(())
}
