use std::time::Duration;

use doorbell::encap::Version;
use doorbell::memory::{Buf, Region};
use doorbell::nic::*;
use doorbell::wire::{Imm, PathMtu};
use doorbell_kit::{Fabric, Faults, LinkConfig};

fn run(lossless: bool, loss: f64) {
    let config = Config { queue_pairs: 16, lossless, ..Config::default() };
    let mut fabric = Fabric::new(7, Version::V2Ipv4, config);
    let (a, b) = (fabric.node(), fabric.node());
    let faults = Faults { loss, ..Faults::NONE };
    let cable = LinkConfig { mtu: 9000, ..LinkConfig::default() }.with_faults(faults);
    let (sa, sb) = (fabric.station(a), fabric.station(b));
    fabric.network.link(sa, sb, cable);

    let mut ends = Vec::new();
    for node in [a, b] {
        let nic = fabric.nic(node);
        let domain = nic.domain();
        let (id, queue) = nic.completion_queue(256).unwrap();
        let pair = nic
            .queue_pair(&QueuePairConfig {
                domain,
                send_completions: id,
                receive_completions: id,
                send_depth: 64,
                receive_depth: 64,
            })
            .unwrap();
        let region = Region::new(1 << 16);
        let registration = nic
            .register(domain, region.clone(), Rights::LOCAL_WRITE | Rights::REMOTE_WRITE)
            .unwrap();
        ends.push((pair, queue, region, registration));
    }
    let [one, two] = [ends[0].0.qpn, ends[1].0.qpn];
    fabric.connect((a, one), (b, two), PathMtu::Mtu1024, |_, _| {});

    let message = (0..5000u32).map(|i| (i * 7) as u8).collect::<Vec<_>>();
    for id in 0..10 {
        let memory = Buf::with_capacity(8192).into();
        ends[1].0.receive.post(ReceiveRequest { id, memory }).unwrap();
    }
    for id in 0..10 {
        let request = WorkRequest::send(id, Memory::Buf(Buf::from(message.clone())));
        ends[0].0.send.post(request.with_imm(Imm(id as u32))).unwrap();
        let to = ends[1].3;
        let data = Inline::new(&id.to_ne_bytes()).unwrap();
        let address = doorbell::wire::RemoteAddr(to.address.0 + 8 * id + 3);
        ends[0].0.send.post(WorkRequest::write(100 + id, address, to.rkey, data)).unwrap();
    }
    ends[0].0.send.ring();
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let done = fabric.run_until(Duration::from_secs(5), |_| {
        while let Some(completion) = ends[0].1.poll() {
            sent.push(completion);
        }
        while let Some(completion) = ends[1].1.poll() {
            received.push(completion);
        }
        sent.len() == 20 && received.len() == 10
    });
    assert!(
        done,
        "{sent:?} {received:?} {:?} {:?}",
        fabric.nic(a).counters().clone(),
        fabric.nic(b).counters().clone()
    );
    for (index, completion) in received.iter().enumerate() {
        assert_eq!((completion.id, completion.outcome), (index as u64, Ok(Done::Received)));
        assert_eq!(completion.imm, Some(Imm(index as u32)));
        let Memory::Buf(buf) = &completion.memory else { panic!("a buffer") };
        assert_eq!(**buf, *message);
    }
    let mut bytes = [0; 8];
    ends[1].2.read_at(3 + 9 * 8, &mut bytes).unwrap();
    assert_eq!(bytes, 9u64.to_ne_bytes());
    println!("{:?}\n{:?}", fabric.nic(a).counters().clone(), fabric.nic(b).counters().clone());
}

#[test]
fn clean() {
    run(false, 0.0);
}

#[test]
fn lossy() {
    run(false, 0.1);
}

#[test]
fn lossless() {
    run(true, 0.0);
}
