//! `--iperf3-users`: whom `bdp serve` lets in among iperf3's clients.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bdp_interop::iperf3::login::PrivateKey;
use bdp_interop::iperf3::server::logins::LoginRules;
use bdp_wire::iperf3::auth::{SKEW_SECONDS, Users};

use crate::{exit, output};

/// Who may log in, and how that is read.
#[derive(clap::Args)]
pub struct UserArgs {
    /// Let in iperf3's clients that log in as one of these users, from anywhere, and no others: lines of user,sha256
    #[arg(long, visible_alias = "authorized-users-path", value_name = "FILE", requires = "iperf3_key")]
    iperf3_users: Option<PathBuf>,

    /// The RSA key by which logins are read, a PEM file; clients have its public part
    #[arg(long, visible_alias = "rsa-private-key-path", value_name = "FILE", requires = "iperf3_users")]
    iperf3_key: Option<PathBuf>,

    /// How far the clocks of client and server may be apart, seconds
    #[arg(long, visible_alias = "time-skew-threshold", value_name = "SECONDS", default_value_t = SKEW_SECONDS, requires = "iperf3_users", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    iperf3_time_skew: u64,

    /// Refuse the logins of iperf3 before 3.17, whose padding (PKCS #1 v1.5) is the weaker one
    #[arg(long, requires = "iperf3_users")]
    iperf3_oaep_only: bool,
}

impl UserArgs {
    /// The users and the key; nothing where none are asked for.
    pub fn find(&self) -> anyhow::Result<Option<Arc<LoginRules>>> {
        let (Some(users), Some(key)) = (&self.iperf3_users, &self.iperf3_key) else { return Ok(None) };
        let text = read(users, "users")?;
        let text = String::from_utf8(text).map_err(|_| {
            exit::environment(format!("read users {}: it is not UTF-8 text", users.display()))
        })?;
        let rules = LoginRules {
            users: Users::parse(&text).map_err(|what| wrong(users, "users", &what))?,
            key: PrivateKey::from_pem(&read(key, "key")?).map_err(|what| wrong(key, "key", &what))?,
            skew_s: self.iperf3_time_skew,
            oaep_only: self.iperf3_oaep_only,
        };
        for path in [users, key] {
            let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
            if mode & 0o044 != 0 {
                let shown = path.display();
                output::note(&format!(
                    "bdp serve: others can read {shown}; 'chmod 600 {shown}' keeps it secret"
                ));
            }
        }
        Ok(Some(Arc::new(rules)))
    }
}

fn read(path: &Path, what: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| exit::environment(format!("read {what} {}: {e}", path.display())))
}

fn wrong(path: &Path, what: &str, why: &str) -> anyhow::Error {
    exit::environment(format!("read {what} {}: {why}", path.display()))
}
