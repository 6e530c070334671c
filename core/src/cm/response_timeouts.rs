//! CM response time-outs: how long two managers wait for each other's messages, and how often they
//! repeat their own.

use std::time::Duration;

use crate::time::nanos;
use crate::wire::cm::{CmRetries, CmTimeout};

use super::config::Config;
use super::state::ConnectionState;

/// The time-outs and the number of repetitions that a REQ lays down for both managers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseTimeouts {
    /// How long the peer's manager may take to answer, in nanoseconds.
    peer_response: u64,
    /// How long the peer waits for this side, in nanoseconds.
    peer_waits: u64,
    /// How often a message is repeated.
    pub retries: u8,
}

/// The least number of times that a REP or a DREQ is sent within the time that a peer has to
/// confirm it, whatever interval the REQ names, unless the REQ wants fewer repetitions.
const LEAST_SENDS: u32 = 8;

impl ResponseTimeouts {
    /// Derives the time-outs from the CM response time-outs of a REQ: of the peer, and of this side.
    pub fn new(config: &Config, peer: CmTimeout, own: CmTimeout, retries: CmRetries) -> Self {
        let retries = retries.get();
        let peer_waits = config.wait(own) * (u32::from(retries) + 1);
        let peer_response = nanos(config.wait(peer));
        Self { peer_response, peer_waits: nanos(peer_waits), retries }
    }

    /// Returns how long the peer's manager may take to answer.
    pub fn peer_response(&self) -> Duration {
        Duration::from_nanos(self.peer_response)
    }

    /// Returns how long the peer waits for this side, with all its repetitions.
    pub fn peer_waits(&self) -> Duration {
        Duration::from_nanos(self.peer_waits)
    }

    /// Returns the time from one repetition to the next: of a REQ, or of a REP or a DREQ, each of
    /// which the peer has a limited time to confirm.
    pub fn retry_interval(&self, state: ConnectionState, config: &Config) -> Duration {
        match state {
            ConnectionState::RepSent | ConnectionState::DreqSent => {
                let most = config.unconfirmed / LEAST_SENDS;
                self.peer_response().min(most.max(*config.waits.start()))
            }
            _ => self.peer_response(),
        }
    }

    /// Returns the longest time that a connection may stay in a state, if there is a limit.
    pub fn state_limit(&self, state: ConnectionState, config: &Config) -> Option<Duration> {
        let all_repetitions = || self.peer_response() * (u32::from(self.retries) + 1);
        match state {
            ConnectionState::ReqSent => Some(config.undecided.max(all_repetitions())),
            ConnectionState::ReqReceived | ConnectionState::RepReceived => Some(config.undecided),
            ConnectionState::RepSent | ConnectionState::DreqSent => Some(config.unconfirmed),
            ConnectionState::Established | ConnectionState::TimeWait => None,
        }
    }
}
