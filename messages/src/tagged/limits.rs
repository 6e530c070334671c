//! The limits of an endpoint.

use std::time::Duration;

use doorbell_verbs::OpenError;

use crate::tagged::wire::OVERHEAD;

/// The limits of an endpoint, which its builder sets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The memory that messages of one peer may take here before receives take them.
    pub window: usize,
    /// The longest message that is sent before its receive is known.
    pub eager: usize,
    /// The longest message that is received.
    pub longest: usize,
    /// The bytes of a long message that one read pulls.
    pub block: usize,
    /// The most reads of one message that are under way at a time.
    pub blocks: usize,
    /// The time for which nothing of a long message may come before it is given up, while its
    /// sender is there.
    pub patience: Duration,
}

impl Limits {
    /// The smallest window of an endpoint.
    pub const LEAST_WINDOW: usize = 4096;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: 1 << 20,
            eager: 32 << 10,
            longest: 256 << 20,
            block: 256 << 10,
            blocks: 4,
            patience: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns an error if a limit has a value that can't be used.
    pub fn check(&self) -> Result<(), OpenError> {
        let Self { window, eager, block, blocks, .. } = *self;
        let least = [
            ("EndpointBuilder::window", window, Self::LEAST_WINDOW),
            ("EndpointBuilder::eager", eager, Self::LEAST_WINDOW - OVERHEAD),
            ("EndpointBuilder::block", block, 1),
            ("EndpointBuilder::blocks", blocks, 1),
        ];
        match least.into_iter().find(|(_, is, least)| is < least) {
            None => Ok(()),
            Some((field, is, least)) => Err(OpenError::Config {
                field,
                found: is.to_string(),
                allowed: format!("at least {least}"),
                why: "a message would never come with less",
            }),
        }
    }
}
