//! Why a setting is changed, and what that gives.

use serde::{Deserialize, Serialize};

use crate::ends::Direction;
use crate::finding::Limit;


