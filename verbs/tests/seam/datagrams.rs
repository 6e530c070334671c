//! Queue pairs for datagrams.

use doorbell_kit::lab;
use doorbell_verbs::work::Datagram;
use doorbell_verbs::{
    Buf, Cause, Completion, CompletionQueue, DATAGRAM_HEADER, Datagrams, DatagramsConfig, Done,
    Failure, Imm, Memory, Nic, Qkey,
};

use crate::common::{Over, Runs, brief, buf, bytes, names, run};
use crate::operations::plug;

const KEY: Qkey = Qkey(0x1111_1111);

struct End {
    nic: Nic,
    queue: CompletionQueue,
    pair: Datagrams,
}

fn end(name: &str, qkey: Qkey) -> End {
    let nic = Nic::builder().config(brief()).open_blocking(name).expect("nobody else has it");
    let queue = nic.completion_queue(64).expect("a capacity");
    let pair = nic.domain().datagrams(&DatagramsConfig::new(&queue, qkey)).expect("room");
    End { nic, queue, pair }
}

fn payload(received: &Completion) -> &[u8] {
    match &received.memory {
        Memory::Buf(buf) => &buf[DATAGRAM_HEADER..],
        other => panic!("{other:?} is no buffer"),
    }
}

#[test]
fn datagrams_reach_their_destination_and_name_their_sender() {
    go_to_and_fro(Over::Shm);
    go_to_and_fro(Over::Udp);
}

#[test]
fn datagrams_over_raw_ethernet_reach_their_destination_and_name_their_sender() {
    lab::test(|lab| {
        plug(lab);
        go_to_and_fro(Over::Packet);
        go_to_and_fro(Over::PacketV2);
    });
}

/// Sends a datagram there, and one back to the sender that the first one names.
fn go_to_and_fro(over: Over) {
    for runs in [Runs::CurrentThread, Runs::MultiThread] {
        run(runs, move || async move {
            let [near, far] = names(over);
            let (mut near, mut far) = (end(&near, KEY), end(&far, KEY));
            let (here, there) = (near.nic.address().clone(), far.nic.address().clone());
            let to = near.nic.destination(&there.to_string(), far.pair.qpn(), KEY).await;
            let to = to.expect("it is there");
            for (round, len) in [0, 1, 64, 1000].into_iter().enumerate() {
                let room = Buf::with_capacity(DATAGRAM_HEADER + 1000);
                far.pair.receive.post(1, room).expect("room");
                let imm = Imm(round as u32);
                let datagram = Datagram::new(buf(9, len), &to).imm(imm).id(2);
                near.pair.send.post(datagram).expect("room");
                assert_eq!(near.queue.completion().await.outcome, Ok(Done::Sent));
                let received = far.queue.completion().await;
                let source = near.pair.qpn();
                assert_eq!(received.outcome, Ok(Done::ReceivedDatagram { source }));
                assert_eq!(received.attached.imm(), Some(imm));
                assert!(payload(&received) == bytes(9, len));

                near.pair.receive.post(3, Buf::with_capacity(100)).expect("room");
                let back = far.nic.destination(&here.to_string(), source, KEY).await;
                let back = back.expect("it is there");
                far.pair.send.post(Datagram::new(buf(8, 8), &back)).expect("room");
                assert_eq!(far.queue.completion().await.outcome, Ok(Done::Sent));
                assert!(payload(&near.queue.completion().await) == bytes(8, 8));
            }
        });
    }
}

/// Datagrams with a wrong key, for no queue pair, or longer than their receive are dropped, and
/// later ones arrive.
#[test]
fn datagrams_that_are_not_for_a_queue_pair_are_dropped() {
    run(Runs::CurrentThread, || async {
        let [near, far] = names(Over::Shm);
        let (mut near, mut far) = (end(&near, KEY), end(&far, KEY));
        let there = far.nic.address().to_string();
        let qpn = far.pair.qpn();
        let good = near.nic.destination(&there, qpn, KEY).await.expect("it is there");
        let bad = near.nic.destination(&there, qpn, Qkey(2)).await.expect("it is there");
        let nobody = near.nic.destination(&there, near.pair.qpn(), KEY).await;
        let nobody = nobody.expect("the host is there");
        far.pair.receive.post(1, Buf::with_capacity(DATAGRAM_HEADER + 100)).expect("room");
        for (to, len) in [(&bad, 8), (&nobody, 8), (&good, 101), (&good, 8)] {
            near.pair.send.post(Datagram::new(buf(1, len), to)).expect("room");
            assert_eq!(near.queue.completion().await.outcome, Ok(Done::Sent));
        }
        assert!(payload(&far.queue.completion().await) == bytes(1, 8));
        let counted = far.nic.statistics().nic;
        assert_eq!((counted.wrong_qkey, counted.passed_over), (1, 1), "{counted:?}");
    });
}

/// A destination of another NIC breaks the queue pair, although this NIC knows another one by the
/// same number.
#[test]
fn a_destination_is_of_one_nic() {
    run(Runs::CurrentThread, || async {
        let [near, far] = names(Over::Shm);
        let (mut near, far) = (end(&near, KEY), end(&far, KEY));
        let there = far.nic.address().to_string();
        let own = near.nic.destination(&there, far.pair.qpn(), KEY).await.expect("it is there");
        let back = near.nic.address().to_string();
        let others = far.nic.destination(&back, near.pair.qpn(), KEY).await.expect("it is there");
        near.pair.send.post(Datagram::new(buf(1, 8), &others)).expect("room");
        let failed = near.queue.completion().await.outcome;
        assert_eq!(failed, Err(Failure::Broke(Cause::NoAddress)));
        drop(own);
    });
}

#[test]
fn a_datagram_longer_than_a_packet_or_to_a_destination_that_was_dropped_breaks_its_queue_pair() {
    run(Runs::CurrentThread, || async {
        for long in [true, false] {
            let [near, far] = names(Over::Shm);
            let (mut near, far) = (end(&near, KEY), end(&far, KEY));
            let there = far.nic.address().to_string();
            let to = near.nic.destination(&there, far.pair.qpn(), KEY).await.expect("it is there");
            let datagram = Datagram::new(buf(1, if long { 5000 } else { 8 }), &to);
            if !long {
                drop(to);
            }
            near.pair.send.post(datagram).expect("room");
            let why = match long {
                true => Cause::LongDatagram { len: 5000, most: 4096 },
                false => Cause::NoAddress,
            };
            let failed = near.queue.completion().await.outcome;
            assert_eq!(failed, Err(Failure::Broke(why)));
        }
    });
}
