//! Two NICs over `udp`: requests of every kind that a reliable connection has.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{Done, Memory, WorkRequest};
use doorbell_kit::{Rig, joined, until};
use doorbell_transports::udp::Udp;

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + number * 13) as u8).collect()
}

/// Posts a request, and takes turns until it is complete; what came with it, and what the other end
/// completed meanwhile.
fn done(
    (near, far): &mut (Rig<Udp>, Rig<Udp>),
    request: WorkRequest,
    received: &mut Vec<Vec<u8>>,
) -> (Done, Memory) {
    near.post(request);
    until("a completion", || {
        near.turn();
        far.turn();
        while let Some(completion) = far.queue.poll() {
            assert_eq!(completion.outcome, Ok(Done::Received));
            let Memory::Buf(buf) = completion.memory else { panic!("the receive's own") };
            received.push(buf.into_vec());
        }
        let completion = near.queue.poll()?;
        Some((completion.outcome.expect("it is carried out"), completion.memory))
    })
}

fn sends_writes_reads_and_atomics(at: &str) {
    let open = || Udp::open(at.parse().expect("an address")).expect("nobody has it");
    let mut nodes = joined(open(), open());
    let (address, rkey) = (nodes.1.lent.address, nodes.1.lent.rkey);
    let mut received = Vec::new();
    let lengths = [0, 1, 16, 100, 4096, 4097, 20_000, 300_000];
    for round in 0..20 {
        for (number, len) in lengths.into_iter().enumerate() {
            let data = bytes(round + number, len);
            nodes.1.receive(1, len);
            let buf = Buf::from(data.clone());
            done(&mut nodes, WorkRequest::send(2, buf).awaited(), &mut received);
            assert!(received.pop() == Some(data.clone()), "a message of {len} bytes");

            let buf = Buf::from(data.clone());
            done(&mut nodes, WorkRequest::write(3, address, rkey, buf).awaited(), &mut received);
            let mut there = vec![0; len];
            nodes.1.region.read_at(0, &mut there).expect("within");
            assert!(there == data, "{len} bytes written");

            let into = Buf::with_capacity(len);
            let read = WorkRequest::read(4, address, rkey, into);
            let (_, memory) = done(&mut nodes, read, &mut received);
            let Memory::Buf(buf) = memory else { panic!("the read's own") };
            assert!(buf.into_vec() == data, "{len} bytes read");
        }
        nodes.1.region.store(0, 40).expect("within");
        let add = WorkRequest::fetch_add(5, address, rkey, 2);
        done(&mut nodes, add, &mut received);
        assert_eq!(nodes.1.region.load(0), Ok(42));
    }
    assert!(received.is_empty());
    // By sockets of their own, and with every ICRC right.
    for node in [&nodes.0, &nodes.1] {
        assert_eq!(node.device.connected(), 1);
        assert_eq!(node.nic.counters().malformed, 0);
    }
}

#[test]
fn two_nics_exchange_everything_over_ipv4() {
    sends_writes_reads_and_atomics("127.71.1.1:0");
}

#[test]
fn two_nics_exchange_everything_over_ipv6() {
    sends_writes_reads_and_atomics("[::1]:0");
}
