//! Messages over a simulated link that holds frames back, in virtual time.

use std::time::Duration;

use anyhow::{Context, ensure};
use doorbell_core::encap::Version;
use doorbell_core::nic::{
    self, CompletionQueue, QueuePairConfig, QueuePairEnds, Registration, WorkRequest,
};
use doorbell_core::wire::PathMtu;
use doorbell_messages::frames::{Emp, Endpoint, Match};
use doorbell_simulation::{Bandwidth, Ether, Fabric, Faults, LinkConfig, Time, passing_in_steps};
use doorbell_verbs::{Buf, Config, Nic, Region, Rights};
use futures_util::future::try_join_all;

/// The delay of the link each way, in microseconds: a short message takes about as long as in the
/// paper.
pub const DELAY: u64 = 20;
/// The length of a message.
pub const BYTES: usize = 64 << 10;
/// How many others may overtake a frame that is held back.
pub const PLACES: u32 = 10;

/// The path MTU of a connection: the greatest that fits into the paper's frames of 1,500 bytes.
const MTU: PathMtu = PathMtu::Mtu1024;
/// What may be unacknowledged of a connection, as in the socket buffers of the paper's TCP.
const WINDOW: u32 = 64 << 10;
/// The virtual time after which a run has failed.
const LONG: Duration = Duration::from_secs(10);
/// The time between two looks at the timers of the endpoints.
const TICK: Duration = Duration::from_micros(50);

/// The carriers of messages that are compared on the simulated link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// EMP's frames, as datagrams.
    Frames,
    /// A reliable connection of which lost packets alone are sent again.
    SelectiveRepeat,
    /// A reliable connection that goes back to a lost packet.
    GoBackN,
}

impl Carrier {
    /// The most bytes of a message in a frame.
    const fn data(self) -> usize {
        match self {
            Self::Frames => 1388,
            Self::SelectiveRepeat | Self::GoBackN => MTU.bytes(),
        }
    }

    /// The bytes of a full frame on the link.
    const fn frame(self) -> usize {
        // Ethernet, IPv4, UDP, base transport header, and ICRC.
        const AROUND: usize = 14 + 20 + 8 + 12 + 4;
        // The header of a datagram, and that of EMP.
        let further = if matches!(self, Self::Frames) { 8 + 24 } else { 0 };
        AROUND + further + self.data()
    }

    /// How many frames with data a message has.
    const fn frames(self) -> usize {
        BYTES.div_ceil(self.data())
    }
}

/// One run over the simulated link.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub carrier: Carrier,
    /// The probability that a frame is held back, so that up to [`PLACES`] others overtake it.
    pub reordering: f64,
    /// How many messages of [`BYTES`] are sent.
    pub messages: u32,
    pub seed: u64,
}

/// The outcome of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// In megabytes a second of virtual time.
    pub rate: f64,
    /// How many frames the link has held back, in both directions.
    pub held: u64,
    /// How many frames with data were sent again, as a share of those of all messages.
    pub again: f64,
}

/// What a run has counted.
struct Sent {
    took: Duration,
    held: u64,
    /// How many frames with data were sent again.
    again: u64,
}

impl Run {
    /// Sends all messages at once to an end that has posted all receives.
    ///
    /// # Errors
    /// When the messages do not arrive.
    pub fn outcome(self) -> anyhow::Result<Outcome> {
        let Sent { took, held, again } = match self.carrier {
            Carrier::Frames => self.frames()?,
            _ => self.writes()?,
        };
        let megabytes = f64::from(self.messages) * BYTES as f64 / 1e6;
        let again = again as f64 / (self.messages as usize * self.carrier.frames()) as f64;
        Ok(Outcome { rate: megabytes / took.as_secs_f64(), held, again })
    }

    /// The simulated link, of 1 Gb/s.
    fn link(self) -> LinkConfig {
        let link = LinkConfig {
            latency: Duration::from_micros(DELAY),
            bandwidth: Bandwidth::gigabits_per_second(1),
            mtu: 9000,
            ..LinkConfig::default()
        };
        link.with_faults(Faults {
            reordering: self.reordering,
            reordering_delay: PLACES * Duration::from_nanos(8 * self.carrier.frame() as u64),
            ..Faults::NONE
        })
    }

    /// Sends the messages as EMP's frames.
    fn frames(self) -> anyhow::Result<Sent> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // The timers of the endpoints go by the runtime's time, which passes with the link's.
        let runtime = runtime.enable_all().start_paused(true).build().context("a runtime")?;
        runtime.block_on(async {
            let (ether, _, [one, other]) =
                Ether::cabled(self.seed, self.link(), Version::V2Ipv4, false);
            let nic = |station, end| -> anyhow::Result<Nic> {
                let seed = Some(2 * self.seed + end);
                let config = Config { seed, spin: Duration::ZERO, ..Config::default() };
                Ok(Nic::builder().config(config).on(ether.station(station)?)?)
            };
            let nics = [nic(one, 0)?, nic(other, 1)?];
            let mut now = ether.now();
            let stepped = async |_| {
                let passed = ether.now().since(now);
                now = ether.now();
                tokio::time::advance(passed).await;
            };
            let messages = self.messages_between(&ether, &nics);
            let messages = tokio::time::timeout(LONG, messages);
            let (took, again) = passing_in_steps(&ether, TICK, stepped, messages)
                .await
                .with_context(|| format!("not all messages have come within {LONG:?}"))??;
            let held = ether.with(|network| network.counters().reordered);
            Ok(Sent { took, held, again })
        })
    }

    /// Sends the messages from one NIC to the other as EMP's frames. Returns how long that took,
    /// and how many frames were sent again.
    async fn messages_between(
        self,
        ether: &Ether,
        nics: &[Nic; 2],
    ) -> anyhow::Result<(Duration, u64)> {
        let builder = || Endpoint::builder().policy(Emp::default()).frame(self.carrier.data());
        let (near, far) = (builder().on(&nics[0]).await?, builder().on(&nics[1]).await?);
        let peer = near.connect(far.name()).await?;
        let began = ether.now();
        let receive = |_| far.receive_at_most(BYTES, Match::exactly(1));
        let receives: Vec<_> = (0..self.messages).map(receive).collect();
        let sends: Vec<_> = (0..self.messages).map(|_| peer.send(1, vec![7; BYTES])).collect();
        try_join_all(receives).await?;
        let took = ether.now().since(began);
        try_join_all(sends).await?;
        Ok((took, near.statistics().resent))
    }

    /// Sends the messages as RDMA writes of a reliable connection.
    fn writes(self) -> anyhow::Result<Sent> {
        let config = nic::Config { queue_pairs: 1, registrations: 1, ..nic::Config::default() };
        let mut fabric = Fabric::new(self.seed, Version::V2Ipv4, config);
        let nodes = [fabric.node(), fabric.node()];
        let [one, other] = nodes.map(|node| fabric.station(node));
        fabric.network.link(one, other, self.link());
        let [near, far] = nodes.map(|node| self.end(fabric.nic(node)));
        let ((mut pair, mut queue, _), (peer, _, memory)) = (near?, far?);
        let ends = [(nodes[0], pair.qpn), (nodes[1], peer.qpn)];
        fabric.connect(ends[0], ends[1], MTU, |connection, sending| {
            let is_selective = self.carrier == Carrier::SelectiveRepeat;
            connection.selective = is_selective;
            (sending.selective, sending.congestion) = (is_selective, is_selective);
            sending.window = WINDOW / MTU.bytes() as u32;
        });
        for id in 0..u64::from(self.messages) {
            let data = Buf::from(vec![7; BYTES]);
            let write = WorkRequest::write(id, memory.address, memory.rkey, data);
            pair.send.post(write.awaited())?;
        }
        pair.send.ring();
        fabric.turn(nodes[0]);
        let mut outcomes = Vec::new();
        let is_done = fabric.run_until(LONG, |_| {
            outcomes.extend(std::iter::from_fn(|| queue.poll()).map(|it| it.outcome));
            outcomes.len() == self.messages as usize
        });
        outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        ensure!(is_done, "not all messages have come within {LONG:?}");
        let took = fabric.now().since(Time::ZERO);
        let again = fabric.nic(nodes[0]).counters().retransmitted;
        Ok(Sent { took, held: fabric.network.counters().reordered, again })
    }

    /// Makes an end of a connection: a queue pair, its completions, and memory to be written.
    fn end(
        self,
        nic: &mut nic::Nic,
    ) -> anyhow::Result<(QueuePairEnds, CompletionQueue, Registration)> {
        let depth = self.messages as usize;
        let domain = nic.domain();
        let (id, queue) = nic.completion_queue(2 * depth)?;
        let config = QueuePairConfig {
            send_depth: depth,
            receive_depth: 1,
            ..QueuePairConfig::new(domain, id)
        };
        let pair = nic.queue_pair(&config)?;
        let memory = nic.register(domain, Region::new(BYTES), Rights::REMOTE_WRITE)?;
        Ok((pair, queue, memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_run_and_frames_are_held_back_only_where_asked_for() {
        for carrier in [Carrier::Frames, Carrier::SelectiveRepeat, Carrier::GoBackN] {
            let run = |reordering, seed| {
                let run = Run { carrier, reordering, messages: 4, seed };
                run.outcome().expect("the messages arrive")
            };
            assert_eq!(run(0.0, 1).held, 0, "{carrier:?}");
            let held = run(0.1, 1);
            assert!(held.held > 0, "{carrier:?}: {held:?}");
            assert_eq!(run(0.1, 1), held, "{carrier:?}");
            assert_ne!(run(0.1, 2), held, "{carrier:?}");
        }
    }
}
