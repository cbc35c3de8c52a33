//! `--user`: login at an iperf3 server that requires users.

use std::path::PathBuf;

use bdp_interop::iperf3::login::{ClientLogin, Padding, PublicKey};
use bdp_model::measurement::Access;
use bdp_sys::terminal::{self, Typed};

use crate::{exit, help};

/// Environment variable of the password, as in iperf3; a command line is visible to everybody.
const PASSWORD: &str = "IPERF3_PASSWORD";

/// The user, and what its login is sealed by.
#[derive(clap::Args)]
pub struct LoginArgs {
    /// User name for an iperf3 server; password from IPERF3_PASSWORD or a prompt
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, visible_alias = "username", value_name = "NAME", requires = "iperf3_public_key", conflicts_with_all = ["token", "token_file", "ssh", "iperf2"])]
    user: Option<String>,

    /// Public key of the iperf3 server, a PEM file
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, visible_alias = "rsa-public-key-path", value_name = "FILE", requires = "user")]
    iperf3_public_key: Option<PathBuf>,

    /// Encrypt the login for iperf3 servers before 3.17 (PKCS #1 v1.5 instead of OAEP)
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, visible_alias = "use-pkcs1-padding", requires = "user")]
    iperf3_pkcs1: bool,
}

impl LoginArgs {
    /// Whether a login is requested, which only iperf3's servers support.
    pub(super) fn is_asked(&self) -> bool {
        self.user.is_some()
    }

    /// The login as it is recorded.
    pub(super) fn access(&self) -> Option<Access> {
        Some(Access::Login {
            user: self.user.clone()?,
            public_key: self.iperf3_public_key.as_ref()?.to_string_lossy().into_owned(),
            pkcs1: self.iperf3_pkcs1,
        })
    }

    /// Returns the login; asks for the password if the environment has none.
    pub(super) fn find(&self) -> anyhow::Result<Option<ClientLogin>> {
        let (Some(user), Some(path)) = (&self.user, &self.iperf3_public_key) else { return Ok(None) };
        if user.is_empty() || user.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(exit::usage("--user needs a name without spaces"));
        }
        let shown = path.display();
        let text =
            std::fs::read(path).map_err(|e| exit::environment(format!("read public key {shown}: {e}")))?;
        let key = PublicKey::from_pem(&text)
            .map_err(|what| exit::environment(format!("read public key {shown}: {what}")))?;
        let padding = if self.iperf3_pkcs1 { Padding::Pkcs1 } else { Padding::Oaep };
        Ok(Some(ClientLogin { user: user.clone(), password: password(user)?, key, padding }))
    }
}

fn password(user: &str) -> anyhow::Result<String> {
    let password = match std::env::var_os(PASSWORD) {
        Some(password) => {
            password.into_string().map_err(|_| exit::usage(format!("{PASSWORD} is not UTF-8 text")))?
        }
        None => match terminal::ask_secretly(&format!("password of {user}: ")) {
            Ok(Typed::Line(line)) => line,
            Ok(Typed::Nothing) => return Err(exit::environment("no password was given")),
            Err(_) => {
                return Err(exit::environment(format!(
                    "no terminal to ask for the password of {user}; set {PASSWORD}"
                )));
            }
        },
    };
    if password.is_empty() || password.chars().any(char::is_control) {
        return Err(exit::usage("a password needs at least one character, and only printable ones"));
    }
    Ok(password)
}
