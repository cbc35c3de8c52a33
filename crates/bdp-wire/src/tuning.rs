//! Changes of a server's host settings by a client with the tune token. Each message is sealed text:
//! an observer of the session can neither alter a message nor add one.

use std::net::IpAddr;

use bdp_model::tuning::{Change, JournalReport, SettingBack, SettingChange, Target};
use bdp_model::units::Nanos;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::proof::{Exchange, Prover};

/// Shortest time before an automatic revert.
pub const SHORTEST_KEPT: Nanos = Nanos::secs(10);
/// Longest time before an automatic revert.
pub const LONGEST_KEPT: Nanos = Nanos::secs(3600);
/// Most changes in one order.
pub const MOST_CHANGES: usize = 32;
/// Longest value of a setting, bytes.
pub const LONGEST_VALUE: usize = 256;

/// A tuning message as sent: JSON text and a proof that its author knows the tune token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The message.
    pub message: String,
    /// 32 bytes in hexadecimal: [`Exchange::seal`].
    pub seal: String,
}

/// Why a sealed message is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The seal does not match the token, exchange, number or text.
    #[error("its authentication code is wrong")]
    Seal,
    /// The text is not the expected message.
    #[error("invalid message ({0}); install the same version of bdp at both ends")]
    Message(String),
}

impl Sealed {
    /// Seals a message with the number of its request.
    pub fn close(
        message: &impl Serialize,
        exchange: &Exchange,
        token: &str,
        prover: Prover,
        number: u64,
    ) -> Result<Self, serde_json::Error> {
        let message = serde_json::to_string(message)?;
        let seal = exchange.seal(token, prover, number, &message);
        Ok(Self { message, seal })
    }

    /// Returns the message if its seal is valid.
    pub fn open<M: DeserializeOwned>(
        &self,
        exchange: &Exchange,
        token: &str,
        prover: Prover,
        number: u64,
    ) -> Result<M, SealError> {
        if !exchange.is_sealed(token, prover, number, &self.message, &self.seal) {
            return Err(SealError::Seal);
        }
        serde_json::from_str(&self.message).map_err(|e| SealError::Message(bdp_model::plain::of_json(&e)))
    }
}

/// A client's request about host settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneRequest {
    /// Report the settings in force. -> [`TuneAnswer::State`]
    State,
    /// Check whether changes could be made, without making them. -> [`TuneAnswer::Checked`]
    Check(TuneOrder),
    /// Make all changes or none. -> [`TuneAnswer::Applied`]
    Apply(TuneOrder),
    /// Keep changes that would otherwise revert automatically. -> [`TuneAnswer::Confirmed`]
    Confirm {
        /// Journal number, of a journal that a client applied.
        journal: u32,
    },
    /// Restore the earlier values. -> [`TuneAnswer::Reverted`]
    Revert {
        /// Journal number, of a journal that a client applied.
        journal: u32,
    },
}

/// An order to change settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneOrder {
    /// Changes, [`MOST_CHANGES`] at most. A route to the unspecified address means the route to the client as the server sees it.
    pub changes: Vec<Change>,
    /// Time before the changes revert unless confirmed, [`SHORTEST_KEPT`] to [`LONGEST_KEPT`].
    pub keep_for: Nanos,
    /// Whether to change settings whose current value differs from the plan's.
    #[serde(default)]
    pub force: bool,
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneAnswer {
    /// Settings in force.
    State(TuneState),
    /// Changes as they would be made.
    Checked {
        /// Steps, in the order of the changes.
        steps: Vec<SettingChange>,
    },
    /// The changes were made.
    Applied(TuneApplied),
    /// The changes are kept.
    Confirmed {
        /// Journal number.
        journal: u32,
        /// Number of settings in the journal.
        settings: u32,
    },
    /// The earlier values were restored.
    Reverted(TuneReverted),
    /// The request was refused.
    Refused {
        /// Cause of the refusal.
        cause: RefusalCause,
        /// Reason, in one line.
        text: String,
    },
}

/// Cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// A client may not change this.
    Bounds,
    /// The request is invalid.
    Request,
    /// The host refused or failed.
    Host,
    /// A cause unknown to this version.
    #[serde(other)]
    Other,
}

/// Tuning state of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneState {
    /// The client's address, as the server sees it.
    pub client: IpAddr,
    /// Journals, oldest first.
    pub journals: Vec<JournalReport>,
    /// Files that are not valid journals.
    #[serde(default)]
    pub damaged: Vec<TuneDamaged>,
}

/// A file that is not a valid journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneDamaged {
    /// Path of the file.
    pub path: String,
    /// What is wrong with the file.
    pub cause: String,
}

/// Result of applying changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneApplied {
    /// Journal number; null if all settings already had their values.
    pub journal: Option<u32>,
    /// Time of the automatic revert by the host's clock, milliseconds since 1970.
    pub until_unix_ms: Option<u64>,
    /// Changes, in order.
    pub steps: Vec<SettingChange>,
}

/// Result of a revert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneReverted {
    /// Journal number.
    pub journal: u32,
    /// Settings restored.
    pub put_back: Vec<SettingBack>,
    /// Settings that already had their earlier value.
    pub were_back: Vec<SettingBack>,
    /// Settings changed by someone else since, and left alone.
    pub foreign: Vec<SettingBack>,
    /// Settings that could not be restored.
    pub failed: Vec<TuneFailed>,
}

/// A setting that could not be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneFailed {
    /// Setting.
    pub target: Target,
    /// Reason.
    pub cause: String,
}

#[cfg(test)]
mod tests {
    use bdp_model::measurement::ends::End;
    use bdp_model::tuning::Reason;

    use super::*;

    const EXCHANGE: Exchange = Exchange { server_nonce: [1; 32], client_nonce: [2; 32] };

    fn apply() -> TuneRequest {
        TuneRequest::Apply(TuneOrder {
            changes: vec![Change {
                end: End::Far,
                target: Target::sysctl("net.ipv4.tcp_rmem"),
                from: None,
                to: "4096 131072 16777216".to_owned(),
                reason: Reason::Off,
                gain: None,
            }],
            keep_for: Nanos::secs(600),
            force: false,
        })
    }

    #[test]
    fn messages_have_the_members_of_the_protocol() {
        for (message, json) in [
            (TuneRequest::State, r#""state""#),
            (TuneRequest::Confirm { journal: 3 }, r#"{"confirm":{"journal":3}}"#),
            (TuneRequest::Revert { journal: 3 }, r#"{"revert":{"journal":3}}"#),
            (
                apply(),
                r#"{"apply":{"changes":[{"end":"far","target":{"kind":"sysctl","name":"net.ipv4.tcp_rmem"},"from":null,"to":"4096 131072 16777216","reason":{"kind":"off"},"gain":null}],"keep_for":"600000000000ns","force":false}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&message).unwrap(), json);
            assert_eq!(serde_json::from_str::<TuneRequest>(json).unwrap(), message);
        }
        let refused: TuneAnswer =
            serde_json::from_str(r#"{"refused":{"cause":"of_a_later_version","text":"no"}}"#).unwrap();
        assert_eq!(refused, TuneAnswer::Refused { cause: RefusalCause::Other, text: "no".to_owned() });
    }

    #[test]
    fn a_seal_is_of_its_token_its_exchange_its_writer_its_number_and_its_text() {
        let sealed = Sealed::close(&apply(), &EXCHANGE, "k7f3", Prover::TuneClient, 4).unwrap();
        let open = |sealed: &Sealed, exchange: &Exchange, token, prover, number| {
            sealed.open::<TuneRequest>(exchange, token, prover, number)
        };
        assert_eq!(open(&sealed, &EXCHANGE, "k7f3", Prover::TuneClient, 4), Ok(apply()));
        let another = Exchange { client_nonce: [3; 32], ..EXCHANGE };
        let longer = Sealed { message: sealed.message.replace("16777216", "26777216"), ..sealed.clone() };
        for wrong in [
            open(&sealed, &EXCHANGE, "k7f4", Prover::TuneClient, 4),
            open(&sealed, &EXCHANGE, "k7f3", Prover::TuneServer, 4),
            open(&sealed, &EXCHANGE, "k7f3", Prover::Client, 4),
            open(&sealed, &EXCHANGE, "k7f3", Prover::TuneClient, 5),
            open(&sealed, &another, "k7f3", Prover::TuneClient, 4),
            open(&longer, &EXCHANGE, "k7f3", Prover::TuneClient, 4),
        ] {
            assert_eq!(wrong, Err(SealError::Seal));
        }
    }

    #[test]
    fn a_message_that_is_not_known_is_an_error_of_its_own() {
        let sealed = Sealed::close(&"later", &EXCHANGE, "k7f3", Prover::TuneClient, 1).unwrap();
        let opened = sealed.open::<TuneRequest>(&EXCHANGE, "k7f3", Prover::TuneClient, 1);
        assert!(matches!(opened, Err(SealError::Message(_))), "{opened:?}");
    }
}
