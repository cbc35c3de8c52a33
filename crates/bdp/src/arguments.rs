//! The command line's arguments; a usage error is one line that ends with a reference to the help.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use bdp_model::plain::in_words;
use bdp_model::sweep::parameter::Parameter;
use bdp_model::units::{ByteCount, Nanos};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, Error, Parser};

use crate::exit::{self, Exit};
use crate::help::{self, Extent};
use crate::iperf3_options::{self, Becomes, Role};
use crate::output;

/// Parses the arguments; prints help or version if requested, and then returns the exit code.
pub fn parse<P: Parser>() -> Result<P, anyhow::Result<Exit>> {
    let arguments = || std::env::args_os().skip(1);
    P::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => {
            let mut root = P::command();
            root.build();
            let extent = if arguments().any(|a| a == "--help") { Extent::Full } else { Extent::Short };
            output::print(&help::text(meant(&root, arguments()).1, extent, output::style().width))
        }
        ErrorKind::DisplayVersion => output::print(&error.render().to_string()),
        _ => Err(exit::usage(explain(&error, &P::command(), &arguments().collect::<Vec<_>>()))),
    })
}

/// Parses a command line that somebody else typed, without `bdp`; a wish for help is an error.
pub fn parse_words<P: Parser>(words: &[String]) -> anyhow::Result<(P, ArgMatches)> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let all = std::iter::once(OsString::from("bdp")).chain(words.iter().cloned());
    let parsed = P::command()
        .try_get_matches_from(all)
        .and_then(|matches| Ok((P::from_arg_matches(&matches)?, matches)));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            exit::usage("help and version are for a terminal: 'bdp measure --help'")
        }
        _ => exit::usage(explain(&error, &P::command(), &words)),
    })
}

/// Parses a time with its unit, or a number of seconds; a day at most.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(Nanos::from_secs_f64(seconds)),
        Ok(_) => Err(format!("'{text}' is not between 0 and 86400 seconds")),
        Err(_) => match text.parse::<Nanos>() {
            Ok(time) if time <= Nanos::secs(86_400) => Ok(time),
            Ok(_) => Err(format!("'{text}' is more than a day")),
            Err(_) => {
                Err(format!("'{text}' is not a time: give seconds, or a unit, for example 10, 0.5 or 250ms"))
            }
        },
    }
}

/// Parses a number of blocks, as in `-k 10K`.
pub fn blocks(text: &str) -> Result<ByteCount, String> {
    let blocks = text.parse::<ByteCount>();
    blocks.map_err(|_| {
        format!("'{text}' is not a number of blocks: give a whole number, for example 100 or 10K")
    })
}

/// Parses the memory for the flows of a capture: a megabyte at least.
pub fn memory(text: &str) -> Result<ByteCount, String> {
    const LEAST: u64 = 1 << 20;
    let memory = text.parse::<ByteCount>().map_err(|error| error.to_string())?;
    match memory.as_bytes() {
        LEAST.. => Ok(memory),
        _ => Err(format!("'{text}' is less than 1 MiB: give a larger size, for example 256M or 4G")),
    }
}

/// Range of a whole number of this name in the table of parameters.
pub fn range(parameter: &str) -> RangeInclusive<i64> {
    let range = Parameter::at(parameter).range;
    let bound = |bound: u64| i64::try_from(bound).unwrap_or(i64::MAX);
    bound(*range.start())..=bound(*range.end())
}

/// The usage error, and where to find the right form.
fn explain(error: &Error, root: &Command, arguments: &[OsString]) -> String {
    let (path, command) = meant(root, arguments.iter().cloned());
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let mistake = if let Some(answer) = of_iperf3(error, &path, &words) {
        answer
    } else if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let names: Vec<&str> =
            command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
        format!("'{path}' needs one of: {}", names.join(", "))
    } else {
        one_line(&error.render().to_string())
    };
    format!("{mistake}; see '{path} --help'")
}

/// The answer to a flag that only iperf3 has.
fn of_iperf3(error: &Error, path: &str, words: &[String]) -> Option<String> {
    if error.kind() == ErrorKind::InvalidSubcommand && path == "bdp" {
        return of_no_command(error, words);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    if path == "bdp" {
        let flags = ["--server", "--client", "-s", "-c"];
        let role = words.iter().find_map(|word| flags.into_iter().find(|flag| word.starts_with(flag)))?;
        return Some(format!("{role} is an iperf3 option: use {}", translated(words)));
    }
    let role = match path {
        "bdp measure" => Some(Role::Client),
        "bdp serve" => Some(Role::Server),
        _ => None,
    };
    if let Some(foreign) = role.and_then(|role| iperf3_options::find(flag, role)) {
        return Some(format!("{flag} is an iperf3 option: {}", foreign.answer));
    }
    match (path, flag.as_str()) {
        ("bdp measure", "-1" | "--one-off") => {
            Some(format!("{flag} is a server option: 'bdp serve {flag}' serves one session"))
        }
        ("bdp serve", "-c" | "--client") => {
            Some(format!("{flag} is an iperf3 option: use 'bdp measure HOST'"))
        }
        ("bdp serve", "-s" | "--server") => {
            Some(format!("{flag} is not needed: 'bdp serve' is always a server"))
        }
        ("bdp measure", "-c" | "--client") => {
            Some(format!("{flag} is an iperf3 option: give the host without an option, 'bdp measure HOST'"))
        }
        ("bdp measure", "-s" | "--server") => Some(format!("{flag} is an iperf3 option: use 'bdp serve'")),
        ("bdp measure", "-d" | "--debug") => Some(format!(
            "{flag} prints debug output in iperf3 (and is --bidir in iperf2): use --json-stream for \
             events, --json for all results, --bidir for both directions at the same time"
        )),
        _ => None,
    }
}

/// The answer to a first word that is no command: the name of a program that bdp replaces, or a host.
fn of_no_command(error: &Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let rest: Vec<String> = words.iter().skip_while(|given| *given != word).skip(1).cloned().collect();
    if ["iperf3", "iperf", "iperf2"].contains(&word.as_str()) {
        let command = if rest.is_empty() { "'bdp measure HOST'".to_owned() } else { translated(&rest) };
        return Some(format!(
            "bdp has no command '{word}': use {command}; it also measures to iperf3 servers, and 'bdp serve' serves iperf3 clients"
        ));
    }
    // Nearly a command was meant as one.
    let is_typo = error.get(ContextKind::SuggestedSubcommand).is_some();
    let is_host = |word: &str| {
        word.contains(['.', ':']) || word == "localhost" || word.chars().any(|c| c.is_ascii_digit())
    };
    if is_typo && !is_host(word) || word.starts_with('-') {
        return None;
    }
    let command: Vec<String> = ["bdp", "measure", word]
        .into_iter()
        .map(str::to_owned)
        .chain(rest)
        .map(|word| output::quote(&word))
        .collect();
    Some(format!(
        "'{}' is not a command; to measure to a host of that name, use '{}'",
        output::tame(word),
        command.join(" ")
    ))
}

/// An iperf3 command line translated to bdp, in quotes, followed by what has no counterpart.
fn translated(words: &[String]) -> String {
    let (mut host, mut rest, mut serves) = (None, Vec::new(), false);
    let role = match words.iter().any(|word| word == "-s" || word == "--server") {
        true => Role::Server,
        false => Role::Client,
    };
    let mut missing = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ if !word.starts_with("--") && word.starts_with('-') && word.len() > 2 => {
                (&word[..2], Some(word[2..].to_owned()))
            }
            _ => (word.as_str(), None),
        };
        match flag {
            "-s" | "--server" => serves = true,
            // Debug output in iperf3, and nothing here.
            "-d" | "--debug" => {}
            "-c" | "--client" => host = value.or_else(|| words.next().cloned()),
            "-w" | "--window" => {
                // iperf3 calls a socket buffer a window.
                rest.push("--sockbuf".to_owned());
                rest.extend(value.or_else(|| words.next().cloned()));
            }
            _ => match iperf3_options::find(flag, role) {
                None => rest.push(word.clone()),
                Some(foreign) => {
                    let value = match foreign.takes_value {
                        true => value.or_else(|| words.next().cloned()),
                        false => None,
                    };
                    match foreign.becomes {
                        Becomes::Option(ours) => {
                            rest.push(ours.to_owned());
                            rest.extend(value);
                        }
                        Becomes::Nothing => {}
                        Becomes::Missing => missing.push(format!("{flag}: {}", foreign.answer)),
                    }
                }
            },
        }
    }
    let mut command = vec!["bdp".to_owned()];
    match host {
        Some(host) => command.extend(["measure".to_owned(), host]),
        None if serves => command.push("serve".to_owned()),
        None => command.extend(["measure".to_owned(), "HOST".to_owned()]),
    }
    command.extend(rest);
    let command = command.iter().map(|word| output::quote(word)).collect::<Vec<_>>().join(" ");
    match missing.is_empty() {
        true => format!("'{command}'"),
        false => format!("'{command}' ({})", missing.join("; ")),
    }
}

/// The intended subcommand, and its name.
fn meant(root: &Command, arguments: impl Iterator<Item = OsString>) -> (String, &Command) {
    let (mut path, mut command) = (root.get_name().to_owned(), root);
    for argument in arguments {
        if let Some(found) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            path = format!("{path} {}", found.get_name());
            command = found;
        }
    }
    (path, command)
}

/// clap's message without headings, usage and blank lines, and without wording of Rust's library.
fn one_line(rendered: &str) -> String {
    let mut line = String::new();
    let said = rendered.strip_prefix("error: ").unwrap_or(rendered).lines().map(str::trim);
    for part in said.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information")) {
        // The tip about `--` helps nobody: no host, run or figure begins with a dash.
        if part.is_empty() || part.starts_with("tip: to pass") {
            continue;
        }
        if !line.is_empty() {
            line.push_str(if part.starts_with("tip:") { "; " } else { " " });
        }
        line.push_str(part);
    }
    in_words(&line).replace("..=", " to ")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(seconds("10"), Ok(Nanos::secs(10)));
        assert_eq!(seconds("0.5"), Ok(Nanos::millis(500)));
        assert_eq!(seconds("10s"), Ok(Nanos::secs(10)));
        assert_eq!(seconds("250ms"), Ok(Nanos::millis(250)));
        for wrong in ["-1", "86401", "2d", "nan", "inf", "25h", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    /// Returns the error for these words, which must be refused.
    fn refused(words: &[&str]) -> Option<String> {
        let root = Cli::command();
        let all = std::iter::once("bdp").chain(words.iter().copied());
        let error = root.clone().try_get_matches_from(all).err()?;
        Some(explain(&error, &root, &words.iter().map(OsString::from).collect::<Vec<_>>()))
    }

    #[test]
    fn a_command_line_of_iperf3_is_answered_with_ours() {
        for (line, ours) in [
            ("-s", "'bdp serve'"),
            ("-s -p 5202 -1", "'bdp serve -p 5202 -1'"),
            ("-c ams1", "'bdp measure ams1'"),
            ("-c ams1 -t 10 -P 4 -R", "'bdp measure ams1 -t 10 -P 4 -R'"),
            ("-t 5 -u -c ams1", "'bdp measure ams1 -t 5 -u'"),
            ("-p 5202 -s", "'bdp serve -p 5202'"),
            ("-cams1 -w 64K", "'bdp measure ams1 --sockbuf 64K'"),
            ("-c ams1 -d -R", "'bdp measure ams1 -R'"),
            ("--client=ams1 -w64K -u -b 1M", "'bdp measure ams1 --sockbuf 64K -u -b 1M'"),
            ("measure -c ams1", "'bdp measure HOST'"),
            ("measure ams1 -d", "--json-stream"),
            ("measure -s", "'bdp serve'"),
            ("-c ams1 --fq-rate 20M --connect-timeout 500", "'bdp measure ams1 -b 20M'"),
            ("-c ams1 -T x -A 0,1", "'bdp measure ams1 -T x -A 0,1'"),
            ("-c ams1 --title x", "'bdp measure ams1 --label x'"),
            ("-c ams1 --logfile out.txt -t 5", "'bdp measure ams1 -t 5' (--logfile: redirect the output"),
            ("-s -D -I /run/x.pid", "'bdp serve' (-D: 'bdp serve' runs in the foreground"),
            ("iperf3", "'bdp measure HOST'"),
            ("iperf3 -c ams1 -R", "'bdp measure ams1 -R'"),
            ("ams1 -R", "'bdp measure ams1 -R'"),
            ("192.0.2.7", "'bdp measure 192.0.2.7'"),
            ("measure ams1 -F /dev/zero", "--check-payload"),
            ("measure ams1 -L 3", "IPv6 flow label"),
            ("measure ams1 -m", "MPTCP"),
            ("measure ams1 -X lo", "SCTP"),
            ("measure ams1 -I x", "PID file"),
            ("measure ams1 -D", "foreground"),
            ("measure ams1 -1", "'bdp serve -1'"),
            ("measure ams1 --logfile x", "'> FILE'"),
            ("measure ams1 --connect-timeout 100", "of 3 s"),
            ("measure ams1 --fq-rate 10M", "-b paces TCP"),
            ("measure ams1 --rcv-timeout 100", "8 s for a silent direction"),
            ("measure ams1 --snd-timeout 100", "8 s for a silent direction"),
            ("measure ams1 --pacing-timer 100", "no timer to set"),
            ("measure ams1 --nstreams 2", "-P sets the number"),
            ("measure ams1 --repeating-payload", "--check-payload"),
            ("measure ams1 --extra-data x", "--label"),
            ("measure ams1 -u -b 50M/10", "-b 50M sends them evenly"),
            ("serve -D", "'bdp serve &'"),
            ("serve -B 192.0.2.1", "--listen"),
            ("serve --server-bitrate-limit 1G", "--max-rate"),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let answer = refused(&words).unwrap();
            assert!(answer.contains(ours), "{line}: {answer}");
        }
    }

    #[test]
    fn no_option_of_iperf3_gets_a_tip_for_another() {
        for flag in ["-F", "-L", "-m", "-X", "--logfile", "--fq-rate", "--pacing-timer", "--nstreams"] {
            let answer = refused(&["measure", "ams1", flag]).unwrap();
            assert!(!answer.contains("similar argument"), "{flag}: {answer}");
        }
        for accepted in ["-T x", "-A 0", "-A 0,1", "--affinity 1", "--forceflush"] {
            let words: Vec<&str> = ["measure", "ams1"].into_iter().chain(accepted.split(' ')).collect();
            assert_eq!(refused(&words), None, "{accepted}");
        }
    }

    /// No error for any option's value uses the wording of Rust's library.
    #[test]
    fn no_option_answers_in_the_words_of_a_library() {
        fn walk(command: &Command, path: &[&str], answers: &mut Vec<String>) {
            for argument in
                command.get_arguments().filter(|a| a.get_num_args().is_none_or(|n| n.takes_values()))
            {
                let Some(long) = argument.get_long() else { continue };
                for wrong in
                    ["", "x", "-1", "1.5.5", "1e99", "99999999999999999999999", "\u{fffd}", "=", "1 2"]
                {
                    let option = format!("--{long}={wrong}");
                    let words: Vec<&str> = path.iter().copied().chain([option.as_str()]).collect();
                    answers.extend(refused(&words));
                }
            }
            for below in command.get_subcommands() {
                let path: Vec<&str> = path.iter().copied().chain([below.get_name()]).collect();
                walk(below, &path, answers);
            }
        }
        let mut answers = Vec::new();
        walk(&Cli::command(), &[], &mut answers);
        assert!(answers.len() > 300, "only {} were refused", answers.len());
        for answer in answers {
            for phrase in [
                "found in string",
                "target type",
                "from empty string",
                "float literal",
                "..=",
                "Os {",
                "os error",
                "ParseIntError",
                "Err(",
                "None",
                "Some(",
                "utf-8 sequence",
                "IP address syntax",
                "socket address syntax",
            ] {
                assert!(!answer.contains(phrase), "{phrase} in: {answer}");
            }
        }
    }
}
