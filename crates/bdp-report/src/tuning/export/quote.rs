//! Quoting of a plan's text for other languages.

use serde::Serialize;

/// Returns a word of POSIX shell.
pub(super) fn shell(text: &str) -> String {
    // No shell supports NUL, and no setting has one.
    format!("'{}'", text.replace('\0', " ").replace('\'', r"'\''"))
}

/// Returns a double-quoted YAML scalar in ASCII (YAML 1.2, section 5.7).
pub(super) fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' '..='~' => quoted.push(c),
            c if (c as u32) < 0x100 => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x1_0000 => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns multi-line text as a YAML value: a literal block if possible, otherwise a quoted scalar.
pub(super) fn yaml_block(text: &str, indent: usize) -> String {
    // Other characters end a YAML line or are invalid (YAML 1.1, section 5.4; 1.2, section 5.1).
    if !text.chars().all(|c| (' '..='~').contains(&c) || c == '\n') {
        return yaml(text) + "\n";
    }
    let lines = text.lines().map(|line| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("{:indent$}{line}\n", ""),
    });
    std::iter::once("|\n".to_owned()).chain(lines).collect()
}

/// Returns text for a one-line comment: printable ASCII, single spaces.
pub(super) fn comment(text: &str) -> String {
    let ascii: String = text
        .chars()
        .map(|c| match c {
            ' '..='~' => c,
            c if c.is_whitespace() || c.is_control() => ' ',
            _ => '?',
        })
        .collect();
    ascii.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the text is a sysctl name valid in any tool: letters, digits and `._-/`, and not leading out of `/proc/sys`.
pub(super) fn is_sysctl_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
        && name.split(['.', '/']).all(|part| !part.is_empty())
}

/// Returns a hash that distinguishes plans: FNV-1a, 64 bits, over their JSON.
pub(super) fn identity(of: &impl Serialize) -> String {
    let json = serde_json::to_vec(of).unwrap_or_default();
    let hash = json.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_one_line_of_ascii() {
        assert_eq!(comment("a\nrm -rf /\r\u{2028}b\u{85}c \u{2019}"), "a rm -rf / b c ?");
    }

    #[test]
    fn a_yaml_scalar_is_one_line_of_ascii() {
        assert_eq!(yaml("a\"\\\n\u{e9}\u{2028}\u{1f600}"), r#""a\"\\\x0a\xe9\u2028\U0001f600""#);
    }

    #[test]
    fn text_that_no_block_holds_is_quoted() {
        assert_eq!(yaml_block("a\n\n b\n", 2), "|\n  a\n\n   b\n");
        for text in ["a\rb: c", "a\u{85}b", "a\u{2028}b", "a\tb"] {
            assert_eq!(yaml_block(text, 2).lines().count(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_sysctl_name_leads_nowhere_else() {
        for name in ["net.ipv4.tcp_rmem", "net/ipv4/conf/eth0.100/rp_filter"] {
            assert!(is_sysctl_name(name), "{name}");
        }
        for name in ["", "net..core", "../../etc/passwd", "/etc", "-w", "net.$(id)", "a b", "net.\n"] {
            assert!(!is_sysctl_name(name), "{name}");
        }
    }
}
