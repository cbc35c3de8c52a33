//! Changes of the settings of a server's host, asked for by a client that knows the tune token. Each message is text under a
//! seal: who sees the session go by can neither change one nor add one.

use std::net::IpAddr;

use bdp_model::tuning::{Change, Target};
use bdp_model::units::Nanos;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::proof::{Exchange, Prover};

/// Shortest time after which changes go back by themselves.
pub const SHORTEST_KEPT: Nanos = Nanos::secs(10);
/// Longest.
pub const LONGEST_KEPT: Nanos = Nanos::secs(3600);
/// Most changes of one order.
pub const MOST_CHANGES: usize = 32;
/// Longest value of a setting, bytes.
pub const LONGEST_VALUE: usize = 256;

/// A message of tuning as it is sent: JSON as text, and what shows that its writer knows the tune token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The message.
    pub message: String,
    /// 32 bytes in hexadecimal: [`Exchange::seal`].
    pub seal: String,
}

/// Why a sealed message is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Its seal is not that of the token, of this exchange, of this number or of this text.
    #[error("its authentication code is wrong")]
    Seal,
    /// The text is not the message that is due.
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

    /// The message, where its seal is right.
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

/// What a client asks of a host's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneRequest {
    /// What is in force. -> [`TuneAnswer::State`]
    State,
    /// Whether changes could be made; nothing is changed. -> [`TuneAnswer::Checked`]
    Check(TuneOrder),
    /// Make changes: all of them or none. -> [`TuneAnswer::Applied`]
    Apply(TuneOrder),
    /// Keep what would go back by itself. -> [`TuneAnswer::Confirmed`]
    Confirm {
        /// The journal that a client applied.
        journal: u32,
    },
    /// Put back what was there before. -> [`TuneAnswer::Reverted`]
    Revert {
        /// The journal that a client applied.
        journal: u32,
    },
}

/// Changes to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneOrder {
    /// The changes, [`MOST_CHANGES`] at most. A route to the unspecified address is that to the client, as the server sees it.
    pub changes: Vec<Change>,
    /// They go back by themselves after this time, [`SHORTEST_KEPT`] to [`LONGEST_KEPT`], unless they are confirmed.
    pub keep_for: Nanos,
    /// Also where a setting is not as the plan has it.
    #[serde(default)]
    pub force: bool,
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneAnswer {
    /// What is in force.
    State(TuneState),
    /// Each change as it would be made.
    Checked {
        /// In the order of the changes.
        steps: Vec<TuneStep>,
    },
    /// Changes were made.
    Applied(TuneApplied),
    /// Changes are kept.
    Confirmed {
        /// The journal.
        journal: u32,
        /// How many settings it has.
        settings: u32,
    },
    /// Changes were put back.
    Reverted(TuneReverted),
    /// It was not done.
    Refused {
        /// Whose fault that is.
        cause: RefusalCause,
        /// Why, in a line.
        text: String,
    },
}

/// Whose fault a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// It is nothing that a client may set.
    Bounds,
    /// The request is wrong.
    Request,
    /// The host refused, or could not.
    Host,
    /// Something that this reader does not know.
    #[serde(other)]
    Other,
}

/// What is in force on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneState {
    /// The client's address, as the server sees it.
    pub client: IpAddr,
    /// The journals, the oldest first.
    pub journals: Vec<TuneJournal>,
    /// Files that are no journals.
    #[serde(default)]
    pub damaged: Vec<TuneDamaged>,
}

/// A file that is no journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneDamaged {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub cause: String,
}

/// A journal of changed settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneJournal {
    /// Its number.
    pub id: u32,
    /// The client that applied it; null where it was applied on the host itself.
    pub client: Option<IpAddr>,
    /// What it stands for: `in_force`, `pending`, ... as `bdp tune journal --json` has it.
    pub standing: String,
    /// When it began, by the host's clock, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// When it goes back by itself, by the same clock; null where it stays.
    pub until_unix_ms: Option<u64>,
    /// Whether a process looks after that.
    pub guarded: bool,
    /// Its settings.
    pub settings: Vec<TuneSetting>,
}

/// A setting of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneSetting {
    /// Which.
    pub target: Target,
    /// Its value before; null where it was not set.
    pub before: Option<String>,
    /// What was written.
    pub wrote: String,
    /// Its value now.
    pub now: Option<String>,
    /// `in_force`, `as_before`, `foreign`, `unknown`.
    pub standing: String,
}

/// A change as it was or would be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneStep {
    /// Which setting.
    pub target: Target,
    /// Its value before; null where it was not set.
    pub before: Option<String>,
    /// Its value after.
    pub after: String,
    /// Whether it has that value already.
    pub already: bool,
}

/// What was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneApplied {
    /// The journal; null where all was set already.
    pub journal: Option<u32>,
    /// When it goes back by itself, by the host's clock, milliseconds since 1970.
    pub until_unix_ms: Option<u64>,
    /// Each change, in order.
    pub steps: Vec<TuneStep>,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneReverted {
    /// The journal.
    pub journal: u32,
    /// Settings that are as before again.
    pub put_back: Vec<TuneBack>,
    /// Settings that were so already.
    pub were_back: Vec<TuneBack>,
    /// Settings that somebody else changed since, which are left.
    pub foreign: Vec<TuneBack>,
    /// What could not be put back, and why.
    pub failed: Vec<TuneFailed>,
}

/// A setting that could not be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneFailed {
    /// Which.
    pub target: Target,
    /// Why.
    pub cause: String,
}

/// A setting that was put back, or that somebody else changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneBack {
    /// Which.
    pub target: Target,
    /// Its value before.
    pub before: Option<String>,
    /// What was written.
    pub wrote: String,
    /// Its value now.
    pub now: Option<String>,
}

#[cfg(test)]
mod tests {
    use bdp_model::ends::End;
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
