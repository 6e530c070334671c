//! A lane: one direction of a cable, with the queue of frames that wait for it.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell_core::wire::Ethernet;

use crate::ids::{LaneId, LinkId, StationId, SwitchId, SwitchPort};
use crate::parts::config::{Bandwidth, LinkConfig};
use crate::parts::faults::FaultModel;
use crate::random::Luck;

/// The interface or port at an end of a cable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CableEnd {
    Station(StationId),
    Switch(SwitchId, SwitchPort),
}

/// A frame on its way through the network. It is held in a box, which is moved from one event to the
/// next.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) frame: Vec<u8>,
    /// The station that has sent the frame.
    pub(crate) origin: StationId,
    /// The number of switches that the frame has crossed.
    pub(crate) hops: u32,
    /// Whether the frame was corrupted or marked since it was sent.
    pub(crate) altered: bool,
    /// The number of the frame's flow, if it was computed.
    pub(crate) flow: Option<u64>,
}

/// A lane, which is one direction of a cable.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) from: CableEnd,
    pub(crate) to: CableEnd,
    /// Whether the cable is not cut.
    pub(crate) whole: bool,
    pub(crate) latency: Duration,
    pub(crate) faults: FaultModel,
    bandwidth: Bandwidth,
    longest_frame: usize,
    luck: Luck,
    /// The frames that wait at the sending end. The bits of the first frame are leaving.
    queue: VecDeque<Box<Flight>>,
    queued_bytes: usize,
    /// The remainder of rounding departures to whole nanoseconds, in the units of
    /// [`Bandwidth::serialise`].
    carry: u64,
}

impl Lane {
    /// Makes the two lanes of a cable between its ends.
    pub(crate) fn pair(
        link: LinkId,
        ends: [CableEnd; 2],
        config: &LinkConfig,
        seed: u64,
    ) -> [Self; 2] {
        let [a, b] = ends;
        let [forth, back] = LaneId::both(link);
        [
            Self::new(a, b, config, FaultModel::new(&config.forth), Luck::stream(seed, forth.0)),
            Self::new(b, a, config, FaultModel::new(&config.back), Luck::stream(seed, back.0)),
        ]
    }

    fn new(
        from: CableEnd,
        to: CableEnd,
        config: &LinkConfig,
        faults: FaultModel,
        luck: Luck,
    ) -> Self {
        Self {
            from,
            to,
            whole: true,
            latency: config.latency,
            faults,
            bandwidth: config.bandwidth,
            longest_frame: longest_frame(config),
            luck,
            queue: VecDeque::new(),
            queued_bytes: 0,
            carry: 0,
        }
    }

    /// Changes the configuration of the lane. Frames on the lane stay as they are, and so does the
    /// departure of the frame that is leaving.
    pub(crate) fn reconfigure(&mut self, config: &LinkConfig, faults: FaultModel) {
        self.latency = config.latency;
        self.faults = faults;
        self.bandwidth = config.bandwidth;
        self.longest_frame = longest_frame(config);
        // The remainder is in units of the old bandwidth.
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

    /// Puts a frame at the end of the queue. Returns whether the queue was empty, so that the
    /// frame's departure is to be arranged.
    pub(crate) fn join(&mut self, flight: Box<Flight>) -> bool {
        self.queued_bytes += flight.frame.len();
        self.queue.push_back(flight);
        self.queue.len() == 1
    }

    /// Takes the first frame out of the queue when its last bit has left.
    pub(crate) fn depart(&mut self) -> Option<Box<Flight>> {
        let flight = self.queue.pop_front()?;
        self.queued_bytes -= flight.frame.len();
        Some(flight)
    }

    /// Returns how the first frame departs. If the queue is empty, the remainder of rounding is
    /// dropped, since the cable pauses.
    pub(crate) fn begin(&mut self) -> Departure {
        let Some(first) = self.queue.front() else {
            self.carry = 0;
            return Departure::Idle;
        };
        match self.bandwidth.serialise(first.frame.len(), &mut self.carry) {
            Some(nanos) => Departure::Takes(Duration::from_nanos(nanos)),
            None => Departure::AtOnce,
        }
    }

    /// Drops all frames of the queue, and returns their number.
    pub(crate) fn clear(&mut self) -> u64 {
        let lost = self.queue.len() as u64;
        self.queue.clear();
        (self.queued_bytes, self.carry) = (0, 0);
        lost
    }

    /// The random numbers of the next frame: a stream of its own, so that the frames behind are the
    /// same however many numbers this frame needs.
    pub(crate) fn luck(&mut self) -> Luck {
        Luck::new(self.luck.draw())
    }
}

/// The departure of the first frame in a lane's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// The queue has no frame.
    Idle,
    /// The last bit of the frame leaves after this time.
    Takes(Duration),
    /// The frame leaves in no time.
    AtOnce,
}

const fn longest_frame(config: &LinkConfig) -> usize {
    config.mtu.saturating_add(Ethernet::LEN)
}
