//! Message sizes that have queue pairs, receives and credits of their own.

use crate::endpoint::EndpointConfig;
use crate::links::LISTED;

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

    pub fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Any, Self::Short, Self::Medium, Self::Long].get(usize::from(code)).copied()
    }

    /// The longest payload.
    pub fn payload(self, config: &EndpointConfig) -> usize {
        match self {
            Self::Any | Self::Long => config.payload,
            Self::Medium => LISTED,
            Self::Short => 64,
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
}
