//! What the policies look like on the wire.

use std::collections::{BTreeMap, BTreeSet};

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Flow, Handlers, Policy, ReplyId, RequestId, Tag,
};
use doorbell_core::encap::Outer;
use doorbell_core::pcap::Reader;
use doorbell_kit::lab;
use doorbell_simulation::Faults;
use doorbell_verbs::{Buf, Region};

use crate::promises::devices::Devices;

const NOTE: RequestId<(u64, u64)> = RequestId::new(0, "note");
const PLACED: RequestId<()> = RequestId::new(1, "placed");
const ADD: RequestId<u64> = RequestId::new(2, "add");
const SUM: ReplyId<u64> = ReplyId::new(0, "sum");

const REQUESTS: usize = 64;
/// The length of placed data, and the longest payload of a message.
const PLACE: usize = 8192;
const PAYLOAD: usize = 2048;

/// The opcodes of RoCE for sends and writes of reliable connections, and for acknowledgements.
const SENDS: std::ops::RangeInclusive<u8> = 0x00..=0x05;
const WRITES: std::ops::RangeInclusive<u8> = 0x06..=0x0B;
const ACKNOWLEDGE: u8 = 0x11;
const SELECTIVE_ACKNOWLEDGE: u8 = 0xC2;
/// In an acknowledgement, that nothing is said of receives; bits above are none of their number.
const NO_CREDITS: u8 = 0x1F;

/// The packets that went over the cable.
#[derive(Default, Debug)]
struct Seen {
    /// The sender's packets by their opcodes, and the queue pairs that they went to.
    opcodes: BTreeMap<u8, usize>,
    to: BTreeSet<u32>,
    /// How many acknowledgements of the other said how many receives are left.
    credits: usize,
}

impl Seen {
    fn count(&self, opcodes: std::ops::RangeInclusive<u8>) -> usize {
        self.opcodes.range(opcodes).map(|(_, count)| count).sum()
    }
}

/// Of a stream of short requests, and something that is placed.
fn seen(policy: Policy, flow: Flow) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let devices = Devices::ether(2, 1, Faults::NONE, false);
        devices.run(sends(&devices, policy, flow)).await
    })
}

async fn sends(devices: &Devices, policy: Policy, flow: Flow) -> Seen {
    let (told, mut came) = tokio::sync::mpsc::unbounded_channel();
    let tells = told.clone();
    let far = Handlers::new()
        .request(NOTE, move |_, _| told.send(()).expect("it is awaited"))
        .request(PLACED, move |_, ()| tells.send(()).expect("it is awaited"));
    let [near_end, far_end] = [0, 1]
        .map(|number| Bundle::new(&devices.nics[number], &BundleConfig::default()).expect("room"));
    let own = EndpointConfig::default();
    let config =
        EndpointConfig { credits: 32, first_credits: 32, payload: PAYLOAD, policy, flow, ..own };
    let segment = Some(Region::new(PLACE));
    let far = Endpoint::builder()
        .config(EndpointConfig { segment: segment.map(Into::into), ..config.clone() })
        .on_bundle(&far_end, far)
        .await;
    let far = far.expect("room");
    let near = Endpoint::builder()
        .config(config)
        .on_bundle(&near_end, Handlers::new())
        .await
        .expect("room");
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    devices.record();
    for number in 0..REQUESTS as u64 {
        peer.request(NOTE, (number, number)).await.expect("it is there");
    }
    let placing = peer.place(PLACED, (), 0, Buf::from(vec![7; PLACE])).await.expect("it fits");
    for _ in 0..=REQUESTS {
        came.recv().await.expect("it comes");
    }
    placing.done().await.expect("it is there");
    read(&devices.recorded())
}

/// The longest payload of those that stream.
const STREAMED: usize = 512;

/// A stream of short requests of such lengths; how many packets left, and in how many frames.
async fn streamed(devices: &Devices, len: impl Fn(u64) -> u64) -> (u64, u64) {
    const MANY: usize = 4000;
    let (tells, mut told) = tokio::sync::mpsc::unbounded_channel();
    let far = Handlers::new().request(NOTE, move |request, (number, len)| {
        tells.send((number, len, request.payload().len() as u64)).expect("it is awaited");
    });
    let [near_end, far_end] = [0, 1]
        .map(|number| Bundle::new(&devices.nics[number], &BundleConfig::default()).expect("room"));
    let config = EndpointConfig {
        credits: 256,
        first_credits: 256,
        payload: STREAMED,
        ..EndpointConfig::default()
    };
    let far =
        Endpoint::builder().config(config.clone()).on_bundle(&far_end, far).await.expect("room");
    let near = Endpoint::builder()
        .config(config)
        .on_bundle(&near_end, Handlers::new())
        .await
        .expect("room");
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    let sent = || devices.nics[0].statistics().device;
    let before = sent();
    for number in 0..MANY as u64 {
        let payload = vec![7; len(number) as usize];
        peer.request_with(NOTE, (number, len(number)), &payload).await.expect("it is there");
    }
    for number in 0..MANY as u64 {
        assert_eq!(told.recv().await, Some((number, len(number), len(number))));
    }
    assert_eq!(far_end.statistics().malformed, 0);
    let after = sent();
    (after.packets_sent - before.packets_sent, after.frames_sent - before.frames_sent)
}

/// Held messages leave when they use a quarter of the credits, though no task waits for anything.
#[test]
fn messages_of_a_quarter_of_the_credits_leave_together() {
    const CREDITS: usize = 32;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let devices = Devices::shm(2);
        let [near, far] = [0, 1].map(|number| {
            Bundle::new(&devices.nics[number], &BundleConfig::default()).expect("room")
        });
        let config = EndpointConfig {
            credits: CREDITS,
            first_credits: CREDITS,
            ..EndpointConfig::default()
        };
        let notes = Handlers::new().request(NOTE, |_, _| {});
        let far =
            Endpoint::builder().config(config.clone()).on_bundle(&far, notes).await.expect("room");
        let near = Endpoint::builder()
            .config(config)
            .on_bundle(&near, Handlers::new())
            .await
            .expect("room");
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        let left = || devices.nics[0].statistics().device.packets_sent;
        let send = |number| {
            let credit = peer.try_credit().expect("it is there").expect("a credit");
            credit.request(NOTE, (number, number)).expect("few words");
            left()
        };
        let alone = left() + 1;
        assert_eq!(send(0), alone, "one that nothing is under way beside");
        let together: Vec<_> = (1..=CREDITS as u64 / 4).map(send).collect();
        let (last, before) = together.split_last().expect("some");
        assert_eq!((before, *last), (&vec![alone; CREDITS / 4 - 1][..], alone + 1));
    });
}

/// Messages of which each send has another length than the next would leave one by one.
#[test]
fn messages_of_many_lengths_go_in_runs() {
    lab::test(|lab| {
        lab.loopback("a0", "b0", 9000).expect("a cable");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (packets, frames) = runtime.expect("a runtime").block_on(async {
            streamed(&Devices::packet("packet-v2"), |number| number * 37 % 500).await
        });
        assert!(packets > 2 * frames, "{packets} packets in {frames} frames");
    });
}

/// Of any seven in a row eight bytes more are wanting to a packet than one more would take: so what
/// fills it is longer than messages may be.
#[test]
fn the_filling_of_a_send_is_no_message() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let len = |number: u64| if number.is_multiple_of(7) { 328 } else { STREAMED as u64 };
    runtime.expect("a runtime").block_on(async { streamed(&Devices::shm(2), len).await });
}

/// Reads a capture into counts of packets.
fn read(capture: &[u8]) -> Seen {
    let (mut seen, mut near) = (Seen::default(), None);
    for record in Reader::new(capture).expect("a capture") {
        let record = record.expect("a record");
        let (outer, packet) = Outer::parse(record.data).expect("RoCE");
        // The first one to speak is the one who sends.
        let from_near = *near.get_or_insert(outer.hosts().0) == outer.hosts().0;
        match (from_near, packet[0]) {
            (true, ACKNOWLEDGE | SELECTIVE_ACKNOWLEDGE) => {}
            (true, opcode) => {
                *seen.opcodes.entry(opcode).or_default() += 1;
                seen.to.insert(u32::from_be_bytes([0, packet[5], packet[6], packet[7]]));
            }
            (false, ACKNOWLEDGE | SELECTIVE_ACKNOWLEDGE) => {
                let syndrome = packet[12];
                seen.credits += usize::from(syndrome < NO_CREDITS);
            }
            (false, _) => {}
        }
    }
    seen
}

#[test]
fn short_messages_share_a_send_or_have_one_each() {
    let together = seen(Policy::Together, Flow::Credits);
    assert!(together.count(SENDS) < REQUESTS / 2, "{together:?}");
    let apart = seen(Policy::Apart, Flow::Credits);
    // What is placed is told of by one more.
    assert_eq!(apart.count(SENDS), REQUESTS + 1, "{apart:?}");
    for seen in [together, apart] {
        assert!(seen.count(WRITES) > 0 && seen.to.len() == 1, "{seen:?}");
    }
}

#[test]
fn sizes_have_connections_of_their_own_and_nothing_is_written() {
    let seen = seen(Policy::PerSize, Flow::Credits);
    assert_eq!(seen.count(WRITES), 0, "{seen:?}");
    // Short ones, and what is placed, with what is said before that.
    assert_eq!(seen.to.len(), 2, "{seen:?}");
    let packets = REQUESTS + 1 + PLACE / PAYLOAD * PAYLOAD.div_ceil(4096);
    assert_eq!(seen.count(SENDS), packets, "{seen:?}");
}

#[test]
fn acknowledgements_count_receives_where_the_nic_controls_the_flow() {
    let credits = seen(Policy::Apart, Flow::Credits);
    assert_eq!(credits.credits, 0, "{credits:?}");
    let nic = seen(Policy::Apart, Flow::Nic { receives: 64 });
    assert!(nic.credits > 0, "{nic:?}");
}

/// Of 200 calls, one after the other.
fn acknowledgements_of_calls() -> usize {
    const CALLS: u64 = 200;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let capture = runtime.expect("a runtime").block_on(async {
        let devices = Devices::ether(2, 1, Faults::NONE, false);
        let calls = async {
            let far =
                Handlers::new().request(ADD, |request, number| request.reply(SUM, number + 1));
            let [near_end, far_end] = [0, 1].map(|number| {
                Bundle::new(&devices.nics[number], &BundleConfig::default()).expect("room")
            });
            let far = Endpoint::on_bundle(&far_end, far).await.expect("room");
            let near = Endpoint::on_bundle(&near_end, Handlers::new()).await;
            let near = near.expect("room");
            let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
            devices.record();
            for number in 0..CALLS {
                let reply = peer.call(ADD, number).await.expect("it is answered");
                assert_eq!(reply.arguments(SUM).ok(), Some(number + 1));
            }
            devices.recorded()
        };
        devices.run(calls).await
    });
    let records = Reader::new(&capture).expect("a capture");
    let packets = records.map(|record| {
        let (_, packet) = Outer::parse(record.expect("a record").data).expect("RoCE");
        packet[0]
    });
    packets.filter(|&opcode| [ACKNOWLEDGE, SELECTIVE_ACKNOWLEDGE].contains(&opcode)).count()
}

#[test]
fn an_answer_acknowledges_its_request() {
    let acknowledgements = acknowledgements_of_calls();
    // By count and by time there are some. Were it not for the answers, each side's queue of eight
    // would ask with every fourth message.
    assert!(acknowledgements <= 200 / 8, "{acknowledgements}");
}
