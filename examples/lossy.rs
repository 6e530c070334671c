//! Two NICs on a simulated network that loses one frame in fifty: one writes a mebibyte to the
//! other's memory, and says so with an immediate.
//!
//! `cargo run --example lossy` writes a capture of what happened, which Wireshark opens.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::memory::{Buf, Region};
use doorbell::protocol::nic::{
    CompletionQueue, Config, Domain, Memory, Nic, QueuePairConfig, QueuePairEnds, ReceiveRequest,
    ResourceError, Rights, WorkRequest,
};
use doorbell::protocol::wire::{Imm, PathMtu};
use doorbell_simulation::{Bandwidth, Fabric, Faults, LinkConfig, Time};

/// A queue pair, with one completion queue for sends and receives.
fn queue_pair(nic: &mut Nic) -> Result<(Domain, QueuePairEnds, CompletionQueue), ResourceError> {
    let domain = nic.domain();
    let (queue, completions) = nic.completion_queue(32)?;
    let config = QueuePairConfig {
        send_depth: 16,
        receive_depth: 16,
        ..QueuePairConfig::new(domain, queue)
    };
    Ok((domain, nic.queue_pair(&config)?, completions))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut fabric = Fabric::new(2026, Version::V2Ipv4, Config::default());
    let (client, server) = (fabric.node(), fabric.node());
    let lossy = Faults { loss: 0.02, reordering: 0.02, ..Faults::NONE };
    let bandwidth = Bandwidth::gigabits_per_second(25);
    let cable = LinkConfig { mtu: 9000, bandwidth, ..LinkConfig::default() }.with_faults(lossy);
    let (one, other) = (fabric.station(client), fabric.station(server));
    fabric.network.link(one, other, cable);
    fabric.network.start_recording(64 << 20);

    let (_, mut his, mut his_completions) = queue_pair(fabric.nic(client))?;
    let (domain, mut hers, mut her_completions) = queue_pair(fabric.nic(server))?;
    // As many packets under way as fill the cable: whatever is lost, the rest of them goes again.
    let (one, other) = ((client, his.qpn), (server, hers.qpn));
    fabric.connect(one, other, PathMtu::Mtu4096, |_, sending| sending.window = 8);

    // The server lends memory, and waits for word.
    let region = Region::new(1 << 20);
    let lent = fabric.nic(server).register(domain, region.clone(), Rights::REMOTE_WRITE)?;
    hers.receive.post(ReceiveRequest { id: 1, memory: Memory::None })?;

    // The client fills it.
    let bytes = (0..1 << 20).map(|i: u32| (i ^ i >> 8) as u8).collect::<Vec<_>>();
    let write = WorkRequest::write(7, lent.address, lent.rkey, Buf::from(&bytes[..]));
    his.send.post(write.with_imm(Imm(42)).awaited())?;
    his.send.ring();

    let (mut done, mut heard) = (None, None);
    fabric.run_until(Duration::from_secs(10), |_| {
        done = done.take().or_else(|| his_completions.poll());
        heard = heard.take().or_else(|| her_completions.poll());
        done.is_some() && heard.is_some()
    });
    writeln!(io::stdout(), "client: {:?}", done.ok_or("the write did not complete")?.outcome?)?;
    writeln!(io::stdout(), "server: {:?}", heard.ok_or("nothing was heard of it")?.attached)?;
    let mut there = vec![0; bytes.len()];
    region.read_at(0, &mut there)?;
    assert_eq!(there, bytes);

    let sent = *fabric.nic(client).counters();
    let took = fabric.now().since(Time::ZERO);
    writeln!(
        io::stdout(),
        "{took:?}, {} packets sent, {} of them again",
        sent.sent,
        sent.retransmitted
    )?;
    let capture = std::env::temp_dir().join("lossy.pcap");
    fabric.network.write_pcap(&capture)?;
    writeln!(io::stdout(), "captured in {}", capture.display())?;
    Ok(())
}
