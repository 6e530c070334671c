//! An end: its NIC, and how it meets the other.

use std::process;
use std::time::Duration;

use anyhow::{Context, bail};
use doorbell_core::nic::Numbering;
use doorbell_transports::wrap::{Faults, Faulty};
use doorbell_transports::{AnyDevice, Spec};
use doorbell_verbs::{
    Buf, Config, Connection, Domain, Kind, Listener, Mapped, Memory, Name, Nic, Progress,
    QueuePair, QueuePairConfig, Queues, QueuesConfig, Region, Registered, RemoteMemory, Rights,
    ServiceId, SharedMemory, Unconnected,
};
use serde_json::json;

use super::guard::Beat;
use crate::perf::ends::peer::Peer;
use crate::perf::plan::meter::Meter;
use crate::perf::plan::test::{Test, Verb};
use crate::perf::shared::patience::LONGEST;
use crate::perf::{Amount, Place, Plan};

pub struct End {
    pub nic: Nic,
    pub domain: Domain,
    pub leads: bool,
    pub beat: Beat,
    /// Whether what either end writes is mapped there.
    maps: bool,
    /// Where the end that follows waits for the other.
    listener: Option<Listener>,
    /// Where the other's NIC is, and its service.
    to: (String, ServiceId),
    /// The idle queue pairs beside the one that is measured.
    idle: Vec<QueuePair>,
}

/// Opens the NIC of an end.
pub fn open(plan: &Plan, place: &Place<'_>) -> anyhow::Result<Nic> {
    let own = Config::default();
    let dedicated = plan.nic.dedicated;
    // A thread that spins for ever needs a processor for itself; and one that is to idle does not.
    let sleeps = dedicated && place.spare.is_none() || plan.test == Test::Verbs(Verb::IdleCpu);
    let spins = if sleeps { own.spin } else { Duration::MAX };
    let progress = progress(plan, place);
    let queue_pairs = plan.connections + 16;
    let spin = plan.nic.spin.unwrap_or(spins);
    let mut config = Config { progress, spin, offload: plan.offload, queue_pairs, ..own };
    if matches!(plan.test, Test::SplitC(_)) {
        // A process that stores again and again and waits for nothing learns only from its NIC
        // that the other process has gone.
        config.keep_alive.idle = LONGEST;
    }
    if matches!(plan.test, Test::LogP(_)) {
        // On a machine that is busy with something else, a process may get no processor for longer
        // than a peer that is waited for may be silent.
        config.keep_alive.busy = LONGEST;
    }
    let builder = Nic::builder().config(config);
    match plan.loss > 0.0 {
        true => {
            // So that several processes at an interface see their own packets.
            let numbering = Numbering { tag: 1 + process::id() % 63, ..Numbering::default() };
            Ok(builder.on_numbered(lossy(plan, place.device, numbering)?, numbering)?)
        }
        false => Ok(builder.open_blocking(place.device)?),
    }
}

/// Opens a device that drops some of the packets that come, another choice of them in each process.
fn lossy(plan: &Plan, device: &str, numbering: Numbering) -> anyhow::Result<Faulty<AnyDevice>> {
    let inside = device.parse::<Spec>()?.open(numbering)?;
    let inside = if plan.offload { inside } else { inside.without_offload() };
    let faults = Faults { loss: plan.loss, ..Faults::NONE };
    Ok(Faulty::new(inside, faults, process::id().into())?)
}

/// Decides which thread runs the NIC of an end.
pub fn progress(plan: &Plan, place: &Place<'_>) -> Progress {
    match plan.nic.dedicated {
        true => Progress::Dedicated { core: place.spare },
        false => Progress::Inline,
    }
}

/// Makes an end that follows listen for connections, at a service identifier that is made from this
/// process's id. An end that leads listens for none.
pub async fn listen(nic: &Nic, leads: bool) -> anyhow::Result<Option<Listener>> {
    if leads {
        return Ok(None);
    }
    let service = ServiceId(0x0D00_12BE_0000_0000 | u64::from(process::id()));
    Ok(Some(nic.listen(service).await?))
}

impl End {
    /// Tells the other end where this one is, and hears the same.
    pub fn new(
        nic: Nic,
        listener: Option<Listener>,
        beat: Beat,
        plan: &Plan,
        peer: &mut Peer,
    ) -> anyhow::Result<Self> {
        let mine = json!({
            "device": nic.capabilities().name,
            "address": nic.address().to_string(),
            "service": listener.as_ref().map(|listener| listener.service().0),
        });
        let theirs = peer.swap_while(&mine, || turn(&nic))?;
        if theirs["device"] != mine["device"] {
            let (there, here) = (&theirs["device"], &mine["device"]);
            bail!("the other end's device is {there}, and this one's {here}");
        }
        let address = theirs["address"].as_str().context("the other end's address")?.to_owned();
        // An end that leads does not listen, so an end that follows is told no service.
        let to = (address, ServiceId(theirs["service"].as_u64().unwrap_or_default()));
        let (domain, leads) = (nic.domain(), peer.leads());
        let maps = nic.capabilities().mapping && plan.map;
        Ok(Self { nic, domain, leads, beat, maps, listener, to, idle: Vec::new() })
    }

    /// Registers memory for the other end to write, and to map if the device can.
    pub fn memory(&self, len: usize) -> anyhow::Result<Registered> {
        let rights = Rights::REMOTE | Rights::LOCAL_WRITE;
        if !self.maps {
            return Ok(self.domain.register(Region::new(len), rights)?);
        }
        let memory = SharedMemory::new(len).context("memory to be mapped")?;
        Ok(self.domain.register_shared(memory, rights)?)
    }

    /// Has each end map the memory that it writes, if the device can.
    pub async fn map(
        &self,
        connection: &Connection,
        mine: &Registered,
        theirs: RemoteMemory,
    ) -> anyhow::Result<Option<Mapped>> {
        if !self.maps {
            return Ok(None);
        }
        connection.grant(mine)?;
        Ok(Some(connection.map(theirs).await?))
    }

    /// Connects a queue pair to that of the other end. The two ends tell each other of their
    /// memory. Returns the connected queue pair, and the other end's memory.
    pub async fn join<K: Kind>(
        &mut self,
        own: Unconnected<K>,
        memory: &Registered,
    ) -> anyhow::Result<(K, RemoteMemory)> {
        let mine = memory.remote().to_bytes();
        let (joined, told) = match &mut self.listener {
            None => own.connect(Name::at(&*self.to.0, self.to.1.0), &mine).await?,
            Some(listener) => {
                let incoming = listener.accept().await?;
                let told = incoming.private().clone();
                (own.accept(incoming, &mine).await?.0, told)
            }
        };
        self.beat.count();
        let theirs = told.first_chunk().context("the other end's key")?;
        Ok((joined, RemoteMemory::from_bytes(*theirs)))
    }

    /// Connects a queue pair whose program posts to its queues, with receives for what comes first.
    pub async fn line(
        &mut self,
        config: &QueuesConfig,
        receives: impl IntoIterator<Item = Memory>,
        memory: &Registered,
    ) -> anyhow::Result<(Queues, RemoteMemory)> {
        let mut own = self.domain.queues(config)?;
        for memory in receives {
            own.post_receive(0, memory)?;
        }
        self.join(own, memory).await
    }

    /// Makes the connections that stay idle in the test, after a message there and back on each.
    pub async fn surround(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let meter = match self.leads && plan.connections > 0 {
            true => Meter::new("connections", Amount::Times(plan.connections as u64)),
            false => Meter::hidden(),
        };
        let mut config = QueuePairConfig::default();
        (config.send_depth, config.receive_depth) = (4, 4);
        let memory = self.domain.register(Region::new(8), Rights::REMOTE)?;
        for number in 0..plan.connections as u64 {
            let own = self.domain.queue_pair(&config)?;
            own.post_receive(Buf::with_capacity(8))?;
            let (pair, _) = self.join(own, &memory).await?;
            if self.leads {
                pair.send_inline(&number.to_le_bytes()).await?;
            }
            let came = pair.receive().await?;
            if came.data[..] != number.to_le_bytes() {
                bail!("idle connection {number} has not carried what it should have");
            }
            if !self.leads {
                pair.send_inline(&came.data).await?;
            }
            self.idle.push(pair);
            self.beat.count();
            meter.at(number + 1, Duration::ZERO);
        }
        Ok(())
    }

    /// Waits until the other end has all that it needs of this one, too.
    pub fn part(&self, peer: &mut Peer) -> anyhow::Result<()> {
        peer.meet(|| turn(&self.nic))
    }
}

/// Takes a turn of the NIC, unless a thread of its own does.
fn turn(nic: &Nic) -> anyhow::Result<()> {
    nic.turn();
    Ok(())
}
