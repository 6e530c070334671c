//! Requests that are futures.

use std::collections::BTreeSet;
use std::sync::Arc;

use doorbell_verbs::work::{Read, Send, Write};
use doorbell_verbs::{
    Attachment, Buf, Cause, Failed, FailedWhy, Failure, Imm, Metadata, Nic, QueuePairConfig,
    Region, Rights,
};

use crate::common::{both, buf, bytes, connected, connected_as, first};
use crate::errors::says;

/// The lengths of messages that the tests send: empty, one packet, several, and those beside the
/// borders.
const LENGTHS: [usize; 8] = [0, 1, 63, 64, 1024, 4096, 4097, 70_000];
const ROUNDS: usize = 4;

pub async fn messages_of_every_length_arrive_whole_and_in_order(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let sends = async move {
        for number in 0..ROUNDS * LENGTHS.len() {
            let data = buf(number, LENGTHS[number % LENGTHS.len()]);
            near.pair.send(data).await.expect("it is received");
        }
        near
    };
    let receives = async move {
        for number in 0..ROUNDS * LENGTHS.len() {
            let len = LENGTHS[number % LENGTHS.len()];
            let message = far.pair.recv(Buf::with_capacity(len)).await.expect("one comes");
            assert_eq!((message.len as usize, message.is_write), (len, false));
            assert!(message.data[..] == bytes(number, len), "message {number} of {len} bytes");
        }
        far
    };
    both(sends, receives).await;
}

pub async fn inline_data_travels_in_the_request(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let sends = async move {
        near.pair.send_inline(b"a few").await.expect("it is received");
        let written = Write::inline(b"bytes", near.peer).expect("short");
        near.pair.perform(written).await.expect("it is written");
        let told = Send::inline(b"there").expect("short").solicited();
        near.pair.perform(told).await.expect("it is received");
        near
    };
    let receives = async move {
        for expected in [&b"a few"[..], b"there"] {
            let message = far.pair.recv(Buf::with_capacity(64)).await.expect("one comes");
            assert_eq!(&message.data[..], expected);
        }
        assert_eq!(first(&far.memory, 5), b"bytes");
        far
    };
    both(sends, receives).await;
}

pub async fn an_immediate_comes_with_its_message(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let sends = async move {
        for number in 0..10 {
            let message = Send::new(buf(1, 10)).imm(Imm(number)).awaited();
            near.pair.perform(message).await.expect("it is received");
        }
        near
    };
    let receives = async move {
        for number in 0..10 {
            let message = far.pair.recv(Buf::with_capacity(10)).await.expect("one comes");
            assert_eq!((message.imm(), message.len), (Some(Imm(number)), 10));
        }
        far
    };
    both(sends, receives).await;
}

pub async fn a_key_that_a_message_has_invalidated_is_refused(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let rights = Rights::REMOTE | Rights::REMOTE_INVALIDATE;
    let given = far.domain.register(Region::new(4096), rights).expect("room");
    let remote = given.remote();
    let sends = async move {
        near.pair.write(buf(1, 8), remote).await.expect("the key is good yet");
        let message = Send::new(buf(1, 8)).invalidate(remote);
        near.pair.perform(message).await.expect("it is received");
        refused(near.pair.write(buf(2, 8), remote).await);
        near
    };
    let receives = async move {
        let message = far.pair.recv(Buf::with_capacity(8)).await.expect("one comes");
        assert_eq!(message.attached, Attachment::Invalidate(remote.rkey()));
        assert_eq!(first(&given, 8), bytes(1, 8));
        // It is there for the other's last request, which ends the connection.
        far.pair.connection().ended().await;
        assert_eq!(first(&given, 8), bytes(1, 8));
    };
    both(sends, receives).await;
}

#[track_caller]
fn refused(outcome: Result<Buf, Failed>) {
    let failed = outcome.expect_err("it is refused");
    says(&failed, &["it was asked for 8 bytes at 0x", " by key 0x"]);
    let why = failed.why();
    assert_eq!(why, FailedWhy::Carried(Failure::Broke(Cause::PeerAccess)));
}

pub async fn written_data_is_there_when_the_write_completes(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let memory = far.memory.clone();
    let writes = async move {
        for number in 0..ROUNDS * LENGTHS.len() {
            let len = LENGTHS[number % LENGTHS.len()];
            let back = near.pair.write(buf(number, len), near.peer).await.expect("it may");
            assert!(back[..] == bytes(number, len), "the buffer comes back as it was");
            assert!(first(&memory, len) == bytes(number, len), "write {number} of {len} bytes");
        }
        // From registered memory, to the middle of the peer's.
        near.memory.write_at(100, &bytes(9, 1000)).expect("within");
        let (from, to) = (near.memory.slice(100..1100), near.peer.at(5000, 1000));
        near.pair.write(from.expect("within"), to.expect("within")).await.expect("it may");
        let mut there = vec![0; 1000];
        memory.read_at(5000, &mut there).expect("within");
        assert!(there == bytes(9, 1000), "from registered memory");
        near.pair.send_inline(b"done").await.expect("it is received");
    };
    let stays = async move {
        far.pair.recv(Buf::with_capacity(8)).await.expect("the other is done");
        far
    };
    both(writes, stays).await;
}

pub async fn a_write_with_an_immediate_completes_a_receive_of_the_peer(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let writes = async move {
        for number in 0..10 {
            let len = LENGTHS[number % LENGTHS.len()];
            let (data, imm) = (buf(number, len), Imm(number as u32));
            near.pair.write_imm(data, near.peer, imm).await.expect("it may");
            let metadata = Metadata::new(&bytes(number, 1 + number)).expect("short");
            let write = Write::new(buf(number, len), near.peer).expect("within").metadata(metadata);
            near.pair.perform(write).await.expect("the peer takes metadata");
            // The peer looks at what was written before it is written over.
            near.pair.recv(Buf::with_capacity(8)).await.expect("the peer has seen it");
        }
        near
    };
    let hears = async move {
        for number in 0..10 {
            let len = LENGTHS[number % LENGTHS.len()];
            let told = far.pair.recv(Buf::with_capacity(8)).await.expect("a write tells");
            assert_eq!((told.imm(), told.len as usize), (Some(Imm(number as u32)), len));
            let (is_write, used) = (told.is_write, told.data.len());
            assert_eq!((is_write, used), (true, 0), "the receive itself is not filled");
            let told = far.pair.recv(Buf::with_capacity(8)).await.expect("a write tells");
            let metadata = Metadata::new(&bytes(number, 1 + number)).expect("short");
            assert_eq!(told.attached, Attachment::Metadata(metadata));
            assert!(first(&far.memory, len) == bytes(number, len), "write {number}");
            far.pair.send_inline(b"seen").await.expect("it is received");
        }
        far
    };
    both(writes, hears).await;
}

pub async fn reads_return_what_the_peers_memory_holds(near: Nic, far: Nic) {
    let (near, far) = connected(&near, &far).await;
    let memory = far.memory.clone();
    let reads = async move {
        for number in 0..ROUNDS * LENGTHS.len() {
            let len = LENGTHS[number % LENGTHS.len()];
            memory.write_at(0, &bytes(number, len)).expect("within");
            let read = near.pair.read(Buf::with_capacity(len), near.peer).await.expect("it may");
            assert!(read[..] == bytes(number, len), "read {number} of {len} bytes");
        }
        memory.write_at(300, &bytes(5, 2000)).expect("within");
        let (from, into) = (near.peer.at(300, 2000), near.memory.slice(7..2007));
        let read = Read::new(into.expect("within"), from.expect("within")).expect("room");
        let read = read.fenced().awaited();
        near.pair.perform(read).await.expect("it may");
        let mut here = vec![0; 2000];
        near.memory.read_at(7, &mut here).expect("within");
        assert!(here == bytes(5, 2000), "into registered memory");
        near.pair.send_inline(b"done").await.expect("it is received");
    };
    let stays = async move {
        far.pair.recv(Buf::with_capacity(8)).await.expect("the other is done");
        far
    };
    both(reads, stays).await;
}

/// The two ends add to the same word: one of them finds every sum, once.
pub async fn atomic_operations_are_atomic(near: Nic, far: Nic) {
    const EACH: u64 = 100;
    let (near, far) = connected(&near, &far).await;
    let own = Arc::new(far);
    let (word, theirs) = (near.peer.at(8, 8).expect("within"), own.clone());
    let adds = async move {
        let mut found = BTreeSet::new();
        for _ in 0..EACH {
            found.insert(near.pair.fetch_add(word, 1).await.expect("it may"));
        }
        // Swapped only if it is as expected.
        let before = near.pair.compare_swap(word, 1 << 40, 3).await.expect("it may");
        assert!(before <= 2 * EACH);
        let mut expected = 0;
        loop {
            let before = near.pair.compare_swap(word, expected, expected + 1).await;
            match before.expect("it may") {
                before if before == expected => break,
                before => expected = before,
            }
        }
        found.insert(expected);
        near.pair.send_inline(b"done").await.expect("it is received");
        found
    };
    let adds_locally = async move {
        let mut found = BTreeSet::new();
        for _ in 0..EACH {
            found.insert(theirs.memory.fetch_add(8, 1).expect("within"));
            tokio::task::yield_now().await;
        }
        theirs.pair.recv(Buf::with_capacity(8)).await.expect("the other is done");
        found
    };
    let (mut found, others) = both(adds, adds_locally).await;
    found.extend(others);
    assert_eq!(found, (0..=2 * EACH).collect());
    assert_eq!(own.memory.load(8), Ok(2 * EACH + 1));
}

pub async fn queue_pairs_share_their_receives(near: Nic, far: Nic) {
    const PAIRS: usize = 3;
    const MESSAGES: usize = 20;
    let (here, there) = (near.domain(), far.domain());
    let receives = there.shared_receive_queue(PAIRS * MESSAGES).expect("a depth");
    for number in 0..PAIRS * MESSAGES {
        receives.post(number as u64, Buf::with_capacity(16)).expect("room");
    }
    let full = receives.post(0, Buf::with_capacity(16)).expect_err("all are posted");
    assert!(full.to_string().contains("shared queue holds 60 receives"), "{full}");
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let shares = QueuePairConfig::default().share(&receives);
        let configs = [QueuePairConfig::default(), shares];
        let (near, far) = connected_as((&here, &there), configs).await;
        senders.push(near);
        receivers.push(far);
    }
    let sends = async move {
        for number in 0..MESSAGES {
            for (which, end) in senders.iter().enumerate() {
                end.pair.send(buf(number + which, 16)).await.expect("it is received");
            }
        }
        senders
    };
    let takes = async move {
        for number in 0..MESSAGES {
            for (which, end) in receivers.iter().enumerate() {
                let message = end.pair.receive().await.expect("one comes");
                assert_eq!(message.data[..], bytes(number + which, 16));
            }
        }
        let refused = receivers[0].pair.post_receive(Buf::with_capacity(16));
        let why = refused.expect_err("it has none of its own").to_string();
        assert!(why.contains("from a shared queue: post them there"), "{why}");
        (receivers, receives)
    };
    both(sends, takes).await;
}

pub async fn a_look_at_memory_finds_what_peers_write(near: Nic, far: Nic) {
    const TURNS: u64 = 50;
    let (near, far) = connected(&near, &far).await;
    let begins = async move {
        for turn in 1..=TURNS {
            near.pair.write(word(turn), near.peer).await.expect("it may");
            let written = || near.memory.load(0).ok().filter(|&word| word == turn);
            near.domain.nic().until(written).await;
        }
        near
    };
    let answers = async move {
        for turn in 1..=TURNS {
            let written = || far.memory.load(0).ok().filter(|&word| word == turn);
            far.domain.nic().until(written).await;
            far.pair.write(word(turn), far.peer).await.expect("it may");
        }
        far
    };
    both(begins, answers).await;
}

/// Returns a word in the byte order of regions.
fn word(value: u64) -> Buf {
    Buf::from(value.to_ne_bytes().to_vec())
}
