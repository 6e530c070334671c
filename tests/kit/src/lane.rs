//! One direction of a cable, with the queue of frames that wait for it.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell_core::wire::Ethernet;

use crate::config::{Bandwidth, LinkConfig};
use crate::faults::Judge;
use crate::luck::Luck;
use crate::network::{LinkId, StationId, SwitchId};
use crate::switch::Port;

/// The number of a lane: each link has two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId(pub(crate) u32);

impl LaneId {
    pub(crate) const fn both(link: LinkId) -> [Self; 2] {
        [Self(2 * link.0), Self(2 * link.0 + 1)]
    }

    pub(crate) const fn opposite(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a cable is plugged in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Socket {
    Station(StationId),
    Switch(SwitchId, Port),
}

/// A frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) frame: Vec<u8>,
    /// The station that sent it.
    pub(crate) origin: StationId,
    /// How many switches it went through.
    pub(crate) hops: u32,
    /// Whether it is no longer as it was sent.
    pub(crate) altered: bool,
}

/// One direction of a cable.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) from: Socket,
    pub(crate) to: Socket,
    /// Whether the cable is whole.
    pub(crate) whole: bool,
    pub(crate) latency: Duration,
    pub(crate) judge: Judge,
    bandwidth: Bandwidth,
    longest_frame: usize,
    luck: Luck,
    /// What waits at the sending end; the bits of the first are leaving.
    queue: VecDeque<Flight>,
    queued_bytes: usize,
    /// What rounding departures to whole nanoseconds left over, as [`Bandwidth::serialise`] has it.
    carry: u64,
}

impl Lane {
    /// A pair of lanes between two sockets.
    pub(crate) fn pair(
        link: LinkId,
        ends: [Socket; 2],
        config: &LinkConfig,
        seed: u64,
    ) -> [Self; 2] {
        let [a, b] = ends;
        let [forth, back] = LaneId::both(link);
        [
            Self::new(a, b, config, Judge::new(&config.forth), Luck::stream(seed, forth.0)),
            Self::new(b, a, config, Judge::new(&config.back), Luck::stream(seed, back.0)),
        ]
    }

    fn new(from: Socket, to: Socket, config: &LinkConfig, judge: Judge, luck: Luck) -> Self {
        Self {
            from,
            to,
            whole: true,
            latency: config.latency,
            judge,
            bandwidth: config.bandwidth,
            longest_frame: longest_frame(config),
            luck,
            queue: VecDeque::new(),
            queued_bytes: 0,
            carry: 0,
        }
    }

    /// Makes the lane another. What is on it stays as it is, and so does the departure of the frame
    /// that is leaving.
    pub(crate) fn reconfigure(&mut self, config: &LinkConfig, judge: Judge) {
        self.latency = config.latency;
        self.judge = judge;
        self.bandwidth = config.bandwidth;
        self.longest_frame = longest_frame(config);
        // It is in parts of the old bandwidth.
        self.carry = 0;
    }

    pub(crate) const fn fits(&self, frame: &[u8]) -> bool {
        frame.len() <= self.longest_frame
    }

    pub(crate) const fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    pub(crate) fn queued_frames(&self) -> usize {
        self.queue.len()
    }

    /// Puts a frame at the end of the queue. Whether it is the only one, whose departure nobody has
    /// arranged yet.
    pub(crate) fn join(&mut self, flight: Flight) -> bool {
        self.queued_bytes += flight.frame.len();
        self.queue.push_back(flight);
        self.queue.len() == 1
    }

    /// Takes the first frame out of the queue: it is gone.
    pub(crate) fn depart(&mut self) -> Option<Flight> {
        let flight = self.queue.pop_front()?;
        self.queued_bytes -= flight.frame.len();
        Some(flight)
    }

    /// What the first frame's departure takes. Without a frame there is a pause, behind which the
    /// cable begins afresh.
    pub(crate) fn begin(&mut self) -> Begun {
        let Some(first) = self.queue.front() else {
            self.carry = 0;
            return Begun::Idle;
        };
        match self.bandwidth.serialise(first.frame.len(), &mut self.carry) {
            Some(nanos) => Begun::Takes(Duration::from_nanos(nanos)),
            None => Begun::AtOnce,
        }
    }

    /// Loses everything that waits, and returns how many frames that were.
    pub(crate) fn clear(&mut self) -> u64 {
        let lost = self.queue.len() as u64;
        self.queue.clear();
        (self.queued_bytes, self.carry) = (0, 0);
        lost
    }

    /// The luck of the next frame: a stream of its own, so that how much of it is used changes
    /// nothing for the frames behind.
    pub(crate) fn luck(&mut self) -> Luck {
        Luck::new(self.luck.draw())
    }
}

/// What a lane does with the first frame in its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begun {
    /// There is none.
    Idle,
    /// Its last bit leaves so much later.
    Takes(Duration),
    /// It leaves in no time.
    AtOnce,
}

const fn longest_frame(config: &LinkConfig) -> usize {
    config.mtu.saturating_add(Ethernet::LEN)
}
