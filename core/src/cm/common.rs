//! What connections share: the time, what waits to be sent and to be told, the counts.

use std::collections::VecDeque;

use crate::common::random::Random;
use crate::common::timers::Timers;
use crate::time::Time;
use crate::wire::TransactionId;
use crate::wire::cm::{Mad, Message};

use super::config::Config;
use super::counters::Counters;
use super::event::Event;

/// A datagram to send, from queue pair 1 to the peer's, with the key
/// [`Qkey::GSI`](crate::wire::Qkey::GSI).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram<W> {
    /// The way to the peer.
    pub way: W,
    /// The datagram.
    pub bytes: [u8; Mad::LEN],
}

/// What connections share.
pub(super) struct Common<W> {
    pub config: Config,
    pub now: Time,
    pub random: Random,
    pub timers: Timers,
    pub events: VecDeque<Event<W>>,
    pub outgoing: VecDeque<Datagram<W>>,
    pub counters: Counters,
}

impl<W: Clone> Common<W> {
    pub fn say<'m>(
        &mut self,
        way: &W,
        transaction: TransactionId,
        message: impl Into<Message<'m>>,
    ) {
        let mut bytes = [0; Mad::LEN];
        Mad { transaction, message: message.into() }.emit(&mut bytes);
        self.push(Datagram { way: way.clone(), bytes });
    }

    /// Makes sure that there is a timer for the connection at a place.
    pub fn has_place(&mut self, place: u32) {
        self.timers.grow(place as usize + 1);
    }

    /// What finds no room is lost, as it may be on the way.
    pub fn push(&mut self, datagram: Datagram<W>) {
        if self.outgoing.len() < self.config.outgoing {
            self.outgoing.push_back(datagram);
        } else {
            self.counters.crowded_out += 1;
        }
    }
}
