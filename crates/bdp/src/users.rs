//! `--iperf3-users`: access control of `bdp serve` for iperf3 clients.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bdp_interop::iperf3::login::PrivateKey;
use bdp_interop::iperf3::server::logins::LoginRules;
use bdp_wire::iperf3::auth::{SKEW_SECONDS, Users};

use crate::arguments::seconds;
use crate::{exit, help, output};

/// Who may log in, and how that is read.
#[derive(clap::Args)]
pub struct UserArgs {
    /// File of users, one user,sha256 per line: serve only iperf3 clients that log in, from any address
    #[arg(long, help_heading = help::INTEROP, hide_short_help = true, visible_alias = "authorized-users-path", value_name = "FILE", requires = "iperf3_key")]
    iperf3_users: Option<PathBuf>,

    /// RSA private key to decrypt logins, a PEM file
    #[arg(long, help_heading = help::INTEROP, hide_short_help = true, visible_alias = "rsa-private-key-path", value_name = "FILE", requires = "iperf3_users")]
    iperf3_key: Option<PathBuf>,

    /// Maximum difference between the clocks of client and server [default: 10s]
    #[arg(long, help_heading = help::INTEROP, hide_short_help = true, visible_alias = "time-skew-threshold", value_name = "TIME", requires = "iperf3_users", value_parser = skew)]
    iperf3_time_skew: Option<u64>,

    /// Refuse logins from iperf3 before 3.17, whose padding (PKCS #1 v1.5) is weaker
    #[arg(long, help_heading = help::INTEROP, hide_short_help = true, requires = "iperf3_users")]
    iperf3_oaep_only: bool,
}

impl UserArgs {
    /// Reads the users and the key; `None` if none are required.
    pub fn find(&self) -> anyhow::Result<Option<Arc<LoginRules>>> {
        let (Some(users), Some(key)) = (&self.iperf3_users, &self.iperf3_key) else { return Ok(None) };
        let text = read(users, "users")?;
        let text = String::from_utf8(text).map_err(|_| {
            exit::environment(format!("read users {}: it is not UTF-8 text", users.display()))
        })?;
        let rules = LoginRules {
            users: Users::parse(&text).map_err(|what| wrong(users, "users", &what))?,
            key: PrivateKey::from_pem(&read(key, "key")?).map_err(|what| wrong(key, "key", &what))?,
            skew_s: self.iperf3_time_skew.unwrap_or(SKEW_SECONDS),
            oaep_only: self.iperf3_oaep_only,
        };
        for path in [users, key] {
            let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
            if mode & 0o044 != 0 {
                let shown = path.display();
                output::note(&format!(
                    "bdp serve: warning: other users can read {shown}; run 'chmod 600 {shown}'"
                ));
            }
        }
        Ok(Some(Arc::new(rules)))
    }
}

/// Parses whole seconds, 1 to 86400.
fn skew(text: &str) -> Result<u64, String> {
    match seconds(text)?.as_ns() {
        ns if ns >= 1_000_000_000 => Ok(ns / 1_000_000_000),
        _ => Err(format!("'{text}' is less than a second")),
    }
}

fn read(path: &Path, what: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| exit::environment(format!("read {what} {}: {e}", path.display())))
}

fn wrong(path: &Path, what: &str, why: &str) -> anyhow::Error {
    exit::environment(format!("read {what} {}: {why}", path.display()))
}
