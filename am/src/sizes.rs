//! Message sizes that have queue pairs, receives and credits of their own.

use crate::endpoint::EndpointConfig;
use crate::links::LISTED;

/// The payload of a short message.
const SHORT: usize = 64;
/// What every endpoint takes: a part of the listing of its handlers.
const LEAST: usize = LISTED;

/// Which messages a link is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Of any size.
    Any,
    /// With next to no payload.
    Short,
    /// With little.
    Medium,
    /// The others, of those that are told apart.
    Long,
}

impl Size {
    /// Those that have links beside the one for the others, from the shortest on.
    pub const LESS: [Self; 2] = [Self::Short, Self::Medium];

    /// By their numbers.
    pub const ALL: [Self; 4] = [Self::Any, Self::Short, Self::Medium, Self::Long];

    /// What whoever takes such messages takes at least.
    pub fn least_payload(self) -> usize {
        if self == Self::Short { SHORT } else { LEAST }
    }

    /// The longest payload.
    pub fn payload(self, config: &EndpointConfig) -> usize {
        match self {
            Self::Any | Self::Long => config.payload,
            Self::Medium => LEAST,
            Self::Short => SHORT,
        }
    }

    /// The most requests that a peer may have under way: of those that take less memory, more.
    pub fn credits(self, config: &EndpointConfig) -> usize {
        match self {
            Self::Any | Self::Short => config.credits,
            Self::Medium => config.credits.div_ceil(2),
            Self::Long => config.credits.div_ceil(4),
        }
    }

    /// How many of those a new peer has.
    pub fn first_credits(self, config: &EndpointConfig) -> usize {
        self.credits(config).min(config.first_credits)
    }
}
