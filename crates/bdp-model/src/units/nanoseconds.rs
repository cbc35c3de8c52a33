//! Serde of times as numbers of nanoseconds, for members whose name ends in `_ns`; the text of older versions is read too.

use serde::{Deserialize, Deserializer, Serializer};

use super::Nanos;

/// Writes `10000000000`.
pub fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}

/// Reads `10000000000` or `"10000000000ns"`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    Either::deserialize(deserializer).map(|either| either.read(Nanos))
}

/// Serde of an optional time.
pub mod option {
    use super::{Deserialize, Deserializer, Either, Nanos, Serializer};

    /// Writes `null` or a number.
    pub fn serialize<S: Serializer>(time: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_some(&time.0),
            None => serializer.serialize_none(),
        }
    }

    /// Reads `null`, a number or text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
        Ok(Option::<Either<u64, Nanos>>::deserialize(deserializer)?.map(|either| either.read(Nanos)))
    }
}

/// Serde of differences of times.
pub mod offsets {
    use serde::Serialize as _;

    use super::super::Offset;
    use super::{Deserialize, Deserializer, Either, Serializer};

    /// Writes an array of numbers.
    pub fn serialize<S: Serializer>(all: &[Offset], serializer: S) -> Result<S::Ok, S::Error> {
        all.iter().map(|offset| offset.as_ns()).collect::<Vec<_>>().serialize(serializer)
    }

    /// Reads an array of numbers or of text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Offset>, D::Error> {
        let all = Vec::<Either<i64, Offset>>::deserialize(deserializer)?.into_iter();
        Ok(all.map(|either| either.read(Offset::ns)).collect())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Either<N, T> {
    Number(N),
    Text(T),
}

impl<N, T> Either<N, T> {
    fn read(self, number: impl FnOnce(N) -> T) -> T {
        match self {
            Self::Number(ns) => number(ns),
            Self::Text(time) => time,
        }
    }
}
