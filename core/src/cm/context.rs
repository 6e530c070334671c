//! What all connections of a manager share: the time, timers, counters, and the queues of datagrams
//! and of events.

use std::collections::VecDeque;

use crate::common::random::Random;
use crate::common::timers::Timers;
use crate::time::Time;
use crate::wire::TransactionId;
use crate::wire::cm::{Mad, Message};

use super::config::Config;
use super::counters::Counters;
use super::event::Event;

/// A management datagram to send, from queue pair 1 to the peer's queue pair 1, with the key
/// [`Qkey::GSI`](crate::wire::Qkey::GSI).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram<W> {
    /// The way to the peer.
    pub way: W,
    /// The management datagram (MAD).
    pub bytes: [u8; Mad::LEN],
}

/// The time, timers, counters and queues that all connections of a manager share.
pub(super) struct Context<W> {
    pub config: Config,
    pub now: Time,
    pub random: Random,
    /// A timer for each place of the connection table.
    pub timers: Timers,
    /// Events that the driver has not taken.
    pub events: VecDeque<Event<W>>,
    /// Datagrams that the driver has not taken.
    pub outgoing: VecDeque<Datagram<W>>,
    pub counters: Counters,
}

impl<W: Clone> Context<W> {
    /// Makes a context at time zero, with empty queues.
    pub fn new(config: Config, random: Random) -> Self {
        Self {
            config,
            now: Time::ZERO,
            random,
            timers: Timers::new(0),
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Encodes a message and queues it to be sent.
    pub fn send<'m>(
        &mut self,
        way: &W,
        transaction: TransactionId,
        message: impl Into<Message<'m>>,
    ) {
        let mut bytes = [0; Mad::LEN];
        Mad { transaction, message: message.into() }.emit(&mut bytes);
        self.enqueue(Datagram { way: way.clone(), bytes });
    }

    /// Queues a datagram to be sent. If the queue is full, the datagram is lost, as it may be in
    /// the network.
    pub fn enqueue(&mut self, datagram: Datagram<W>) {
        if self.outgoing.len() < self.config.outgoing {
            self.outgoing.push_back(datagram);
        } else {
            self.counters.crowded_out += 1;
        }
    }

    /// Makes sure that there is a timer for the connection at a place of the table.
    pub fn add_timer(&mut self, place: u32) {
        self.timers.grow(place as usize + 1);
    }
}
