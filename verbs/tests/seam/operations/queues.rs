//! Requests that are posted to queues, and completions that are read.

use std::pin::Pin;
use std::task::Waker;
use std::thread;

use doorbell_verbs::floor::{Copied, HeldNic, Look};
use doorbell_verbs::work::{Read, Send, Write};
use doorbell_verbs::{
    Attachment, Buf, Cause, Completion, CompletionQueue, Done, Failure, Imm, Memory, Nic,
    QueuesConfig, RemoteMemory,
};
use futures_core::Stream;

use crate::common::{End, MEMORY, both, buf, bytes, joined, now};

type Joined = (End<doorbell_verbs::Queues>, CompletionQueue);

/// Makes two ends, each of which has all its completions in one queue.
async fn pair(near: &Nic, far: &Nic) -> (Joined, Joined) {
    let queue = |nic: &Nic| nic.completion_queue(256).expect("a size");
    let (here, there) = (queue(near), queue(far));
    let mut configs = (QueuesConfig::new(&here), QueuesConfig::new(&there));
    // The peer may say late what it has taken, if it never has nothing to do.
    (configs.0.send_depth, configs.1.send_depth) = (256, 256);
    (configs.0.receive_depth, configs.1.receive_depth) = (256, 256);
    let ends = joined((&near.domain(), &configs.0), (&far.domain(), &configs.1)).await;
    ((ends.0, here), (ends.1, there))
}

/// Takes a turn, and runs `does` with the NIC if it can be had.
fn in_a_turn<R>(nic: &Nic, does: impl FnOnce(HeldNic<'_>) -> R) -> R {
    let mut done = None;
    // Who finds nothing has the turn do all that it calls for.
    let found = nic.turn_and_find(|hand| {
        done = Some(does(hand));
        None::<()>
    });
    assert_eq!(found, None);
    done.expect("it was done in the turn")
}

/// Returns the bytes that a message brought.
#[track_caller]
fn brought(completion: Completion) -> Vec<u8> {
    assert_eq!(completion.outcome, Ok(Done::Received));
    let Memory::Buf(buf) = completion.memory else { panic!("the receive's own") };
    buf.into_vec()
}

fn receives(end: &mut End<doorbell_verbs::Queues>, count: usize, len: usize) {
    for id in 0..count {
        end.pair.receive.post(id as u64, Buf::with_capacity(len)).expect("room");
    }
}

pub async fn requests_of_a_batch_complete_in_their_order(near: Nic, far: Nic) {
    const COUNT: usize = 50;
    let ((mut near, mut sent), (mut far, mut received)) = pair(&near, &far).await;
    receives(&mut far, COUNT, 100);
    let sends = async move {
        let mut batch = near.pair.send.batch();
        for id in 0..COUNT {
            batch.post(Send::new(buf(id, 100)).id(id as u64)).expect("room");
        }
        drop(batch);
        for id in 0..COUNT {
            let completion = sent.completion().await;
            assert_eq!((completion.id, completion.outcome), (id as u64, Ok(Done::Sent)));
        }
        (near, sent)
    };
    let takes = async move {
        for id in 0..COUNT {
            let completion = received.completion().await;
            assert_eq!(completion.id, id as u64);
            assert!(brought(completion) == bytes(id, 100), "message {id}");
        }
        (far, received)
    };
    both(sends, takes).await;
}

/// Requests that were put before go first, whichever NIC is held, if one is.
pub async fn requests_posted_in_a_look_keep_their_order(near: Nic, far: Nic) {
    const COUNT: usize = 30;
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    receives(&mut there, COUNT, 100);
    let other = far.clone();
    let sends = async move {
        let queue = &mut here.pair.send;
        for id in (0..COUNT).step_by(3) {
            let send = |id| Send::new(buf(id, 100)).unsignalled();
            queue.put(send(id)).expect("room");
            in_a_turn(&near, |mut nic| nic.post(queue, send(id + 1))).expect("room");
            in_a_turn(&other, |mut nic| nic.post(queue, send(id + 2))).expect("room");
        }
        queue.post(Send::new(buf(0, 0))).expect("room");
        assert_eq!(sent.completion().await.outcome, Ok(Done::Sent));
        (here, sent)
    };
    let takes = async move {
        there.pair.receive.post(0, Buf::with_capacity(0)).expect("room");
        for id in 0..COUNT {
            assert!(brought(received.completion().await) == bytes(id, 100), "message {id}");
        }
        assert!(brought(received.completion().await).is_empty());
        (there, received)
    };
    both(sends, takes).await;
}

/// Messages are copied in several pieces, with an immediate or not, whichever NIC is held, if one
/// is. They overtake no waiting request, and nothing is copied on a lossy device.
pub async fn copied_messages_keep_their_order(near: Nic, far: Nic) {
    const COUNT: usize = 200;
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    // The sender waits for no receive.
    receives(&mut there, COUNT, 4096);
    let lossless = near.capabilities().lossless;
    let other = far.clone();
    let sends = async move {
        let queue = &mut here.pair.send;
        for id in 0..COUNT {
            let message = bytes(id, id * 20);
            let (front, behind) = message.split_at(id * 5);
            let imm = (id % 3 == 0).then_some(Imm(id as u32));
            let copied = Copied { imm, bytes: [front, behind], signalled: true };
            let nic = if id % 2 == 0 { &near } else { &other };
            let mut was = in_a_turn(nic, |mut nic| nic.send_copied(queue, &copied));
            assert!(lossless || !was);
            if !was {
                let send = || Send::new(Buf::from(message.clone())).unsignalled();
                queue.put(imm.map_or_else(send, |imm| send().imm(imm))).expect("room");
                was = in_a_turn(nic, |mut nic| nic.send_copied(queue, &copied));
                assert!(!was, "it would be there twice");
                queue.ring();
            } else {
                let completion = sent.completion().await;
                assert_eq!((completion.id, completion.outcome), (0, Ok(Done::Sent)));
            }
        }
        (here, sent)
    };
    let takes = async move {
        for id in 0..COUNT {
            let completion = received.completion().await;
            let imm = (id % 3 == 0).then_some(Attachment::Imm(Imm(id as u32)));
            assert_eq!(completion.attached, imm.unwrap_or_default(), "message {id}");
            assert!(brought(completion) == bytes(id, id * 20), "message {id}");
        }
        (there, received)
    };
    both(sends, takes).await;
}

/// A message that can be sent only once is sent as a whole, and not in parts.
pub async fn a_copied_message_goes_into_one_packet(near: Nic, far: Nic) {
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    receives(&mut there, 1, 8192);
    let long = bytes(0, 8192);
    let copied = Copied { imm: None, bytes: [&long[..1], &long[1..]], signalled: true };
    let queue = &mut here.pair.send;
    assert!(!in_a_turn(&near, |mut nic| nic.send_copied(queue, &copied)));
    let (posts, takes) =
        (async { queue.post(Send::new(Buf::from(long.clone()))) }, received.completion());
    let (posted, completion) = tokio::join!(posts, takes);
    posted.expect("room");
    assert!(brought(completion) == long);
    assert_eq!(sent.completion().await.outcome, Ok(Done::Sent));
}

/// A copied message can't be repeated, whatever the patience of the queue pair.
pub async fn a_copied_message_without_a_receive_ends_the_connection(near: Nic, far: Nic) {
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    receives(&mut there, 1, 8);
    let queue = &mut here.pair.send;
    let copied = |id: &'static [u8], signalled| Copied { imm: None, bytes: [id, &[]], signalled };
    for (message, signalled) in [(b"received", true), (b"unwanted", false)] {
        let copied = copied(message, signalled);
        assert!(in_a_turn(&near, |mut nic| nic.send_copied(queue, &copied)));
    }
    queue.post(Send::new(buf(1, 8)).id(1)).expect("room");
    let takes = async { brought(received.completion().await) };
    let fails =
        async { [sent.completion().await, sent.completion().await, sent.completion().await] };
    let (found, failed) = tokio::join!(takes, fails);
    assert_eq!(found, b"received");
    let [done, broke, flushed] = failed.map(|completion| completion.outcome);
    assert_eq!(done, Ok(Done::Sent));
    assert!(
        matches!(broke, Err(Failure::Broke(Cause::ReceiverNotReady { tries: 1, .. }))),
        "{broke:?}"
    );
    assert!(
        matches!(flushed, Err(Failure::Flushed(Cause::ReceiverNotReady { .. }))),
        "{flushed:?}"
    );
}

/// A look that waits for a completion.
struct Comes<'q>(&'q mut CompletionQueue);

impl Look for Comes<'_> {
    type Output = Vec<u8>;

    fn look(&mut self, _: HeldNic<'_>) -> Option<Vec<u8>> {
        let mut completion = self.0.look()?;
        let Memory::Buf(buf) = std::mem::take(&mut completion.memory) else { return None };
        Some(buf.into_vec())
    }

    fn register(&mut self, waker: &Waker) {
        self.0.arm(waker);
    }
}

/// The acknowledgement may be delayed, but not until the receiver happens to go on.
pub async fn a_found_message_is_acknowledged_though_the_program_does_nothing_more(
    near: Nic,
    far: Nic,
) {
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    receives(&mut there, 3, 100);
    for id in 0..3 {
        let takes = far.wait_for(Comes(&mut received));
        let sends = async {
            here.pair.send.post(Send::new(buf(id, 100))).expect("room");
            // Until it has been found, the sender waits for nothing.
        };
        let (found, ()) = tokio::join!(takes, sends);
        assert!(found == bytes(id, 100), "message {id}");
        assert_eq!(sent.completion().await.outcome, Ok(Done::Sent));
    }
}

/// The acknowledgement of a message that a program finds in a turn of its own is sent, whether or
/// not the device was armed before.
pub async fn a_message_found_in_a_turn_of_the_program_is_acknowledged(near: Nic, far: Nic) {
    let ((mut here, mut sent), (mut there, mut received)) = pair(&near, &far).await;
    receives(&mut there, 3, 100);
    for id in 0..3 {
        here.pair.send.post(Send::new(buf(id, 100))).expect("room");
        loop {
            let look =
                |_: HeldNic<'_>| received.look().map(|mut found| std::mem::take(&mut found.memory));
            match far.turn_and_find(look) {
                Some(Memory::Buf(found)) => break assert!(found.into_vec() == bytes(id, 100)),
                Some(other) => panic!("a receive of {} bytes", other.filled()),
                None => tokio::task::yield_now().await,
            }
        }
        assert_eq!(sent.completion().await.outcome, Ok(Done::Sent));
    }
}

pub async fn unsignalled_requests_complete_only_if_they_fail(near: Nic, far: Nic) {
    let ((mut near, mut sent), (far, received)) = pair(&near, &far).await;
    let (memory, connection) = (far.memory.clone(), far.pair.connection.clone());
    let writes = async move {
        for id in 0..20 {
            let to = near.peer.at(id * 8, 8).expect("within");
            near.pair
                .send
                .post(Write::new(buf(1, 8), to).expect("room").id(id).unsignalled())
                .expect("room");
        }
        near.pair.send.post(Write::new(buf(1, 8), near.peer).expect("room").id(20)).expect("room");
        let completion = sent.completion().await;
        assert_eq!((completion.id, completion.outcome), (20, Ok(Done::Written)));
        let mut there = [0; 8];
        memory.read_at(19 * 8, &mut there).expect("within");
        assert_eq!(there[..], bytes(1, 8));
        let wrong = RemoteMemory::new(
            near.peer.address(),
            doorbell_verbs::RemoteMemory::rkey(&near.peer),
            8,
        );
        let beyond = RemoteMemory::new(wrong.address(), wrong.rkey(), MEMORY as u64 * 2);
        let beyond = beyond.at(MEMORY as u64, 8).expect("of what is pretended");
        near.pair
            .send
            .post(Write::new(buf(1, 8), beyond).expect("room").id(21).unsignalled())
            .expect("room");
        let completion = sent.completion().await;
        let refused = Err(Failure::Broke(Cause::PeerAccess));
        assert_eq!((completion.id, completion.outcome), (21, refused));
    };
    let stays = async move {
        connection.ended().await;
        (far, received)
    };
    both(writes, stays).await;
}

pub async fn a_fenced_write_sends_what_the_read_before_it_brought(near: Nic, far: Nic) {
    const LEN: usize = 40_000;
    let ((mut near, mut sent), (mut far, mut received)) = pair(&near, &far).await;
    far.memory.write_at(0, &bytes(3, LEN)).expect("within");
    receives(&mut far, 1, 8);
    let copies = async move {
        let here = || near.memory.slice(..LEN).expect("within");
        let (from, to) = (near.peer.at(0, LEN as u64), near.peer.at(LEN as u64, LEN as u64));
        let mut batch = near.pair.send.batch();
        batch.post(Read::new(here(), from.expect("within")).expect("room").id(1)).expect("room");
        batch
            .post(Write::new(here(), to.expect("within")).expect("room").id(2).fenced())
            .expect("room");
        batch.post(Send::inline(b"done").expect("short").id(3)).expect("room");
        drop(batch);
        for (id, done) in [(1, Done::Read), (2, Done::Written), (3, Done::Sent)] {
            let completion = sent.completion().await;
            assert_eq!((completion.id, completion.outcome), (id, Ok(done)));
        }
        (near, sent)
    };
    let looks = async move {
        assert_eq!(brought(received.completion().await), b"done");
        let mut copied = vec![0; LEN];
        far.memory.read_at(LEN, &mut copied).expect("within");
        assert!(copied == bytes(3, LEN), "the write sent what was read");
        (far, received)
    };
    both(copies, looks).await;
}

pub async fn queues_share_their_receives(near: Nic, far: Nic) {
    const COUNT: usize = 20;
    let (here, there) = (near.domain(), far.domain());
    let mut sent = near.completion_queue(64).expect("a size");
    let mut received = far.completion_queue(64).expect("a size");
    let own = far.completion_queue(64).expect("a size");
    let shared = there.shared_receives_to(&received, 2 * COUNT).expect("a depth");
    for id in 0..2 * COUNT {
        shared.post(id as u64, Buf::with_capacity(16)).expect("room");
    }
    let sends = QueuesConfig::new(&sent);
    let takes = QueuesConfig::new(&own).share(&shared);
    let (mut one, far_one) = joined((&here, &sends), (&there, &takes)).await;
    let (mut other, far_other) = joined((&here, &sends), (&there, &takes)).await;
    let qpns = [far_one.pair.send.qpn(), far_other.pair.send.qpn()];
    let sends = async move {
        for number in 0..COUNT {
            for end in [&mut one, &mut other] {
                end.pair.send.post(Send::new(buf(number, 16))).expect("room");
                assert_eq!(sent.completion().await.outcome, Ok(Done::Sent));
            }
        }
        (one, other, sent)
    };
    let takes = async move {
        for number in 0..2 * COUNT {
            let completion = received.completion().await;
            assert_eq!((completion.id, completion.qpn), (number as u64, qpns[number % 2]));
            assert_eq!(brought(completion), bytes(number / 2, 16));
        }
        (far_one, far_other, received, own, shared)
    };
    both(sends, takes).await;
}

/// Answers each message through the held NIC, or begins.
async fn plays(
    mut end: End<doorbell_verbs::Queues>,
    mut queue: CompletionQueue,
    begins: bool,
) -> (End<doorbell_verbs::Queues>, CompletionQueue) {
    const TURNS: usize = 200;
    let next = || Send::inline(b"ping").expect("short").unsignalled();
    receives(&mut end, 8, 8);
    if begins {
        end.pair.send.post(next()).expect("room");
    }
    for turn in 0..TURNS {
        let nic = queue.nic().clone();
        let mut hand = nic.until_completion(&mut queue).await;
        if !begins || turn + 1 < TURNS {
            hand.post(&mut end.pair.send, next()).expect("room");
        }
        drop(hand);
        assert_eq!(brought(queue.poll().expect("it was waited for")), b"ping");
        end.pair.receive.post(0, Buf::with_capacity(8)).expect("room");
    }
    (end, queue)
}

/// Each of two completions is waited for twice, peeked at twice and taken once, in order.
pub async fn a_completion_stays_in_its_queue_until_it_is_taken(near: Nic, far: Nic) {
    let ((mut near, sent), (mut far, mut received)) = pair(&near, &far).await;
    receives(&mut far, 3, 8);
    let sends = async move {
        for number in [0, 1, 2] {
            near.pair
                .send
                .post(Send::inline(&[number]).expect("short").unsignalled())
                .expect("room");
        }
        (near, sent)
    };
    let takes = async move {
        let nic = received.nic().clone();
        for number in [0, 1] {
            drop(nic.until_completion(&mut received).await);
            drop(nic.until_completion(&mut received).await);
            for _ in 0..2 {
                assert_eq!(received.peek().map(|completion| completion.id), Some(number));
            }
            assert_eq!(brought(received.poll().expect("it was waited for")), [number as u8]);
        }
        // Who stops waiting takes nothing with him, whether it had come or not.
        drop(now(nic.until_completion(&mut received)).await);
        let third = match now(received.completion()).await {
            Some(third) => third,
            None => received.completion().await,
        };
        assert_eq!((third.id, brought(third)), (2, vec![2]));
        (far, received)
    };
    both(sends, takes).await;
}

pub async fn an_answer_posted_with_the_held_nic_leaves_at_once(near: Nic, far: Nic) {
    let ((near, sent), (far, received)) = pair(&near, &far).await;
    both(plays(near, sent, true), plays(far, received, false)).await;
}

async fn next(stream: &mut CompletionQueue) -> Completion {
    let next = std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
    next.expect("the stream does not end")
}

pub async fn a_completion_queue_is_a_stream(near: Nic, far: Nic) {
    const COUNT: usize = 100;
    let ((mut near, mut sent), (mut far, mut received)) = pair(&near, &far).await;
    receives(&mut far, 64, 16);
    let sends = async move {
        for number in 0..COUNT {
            near.pair.send.post(Send::new(buf(number, 16))).expect("room");
            assert_eq!(next(&mut sent).await.outcome, Ok(Done::Sent));
        }
        (near, sent)
    };
    let takes = async move {
        for number in 0..COUNT {
            assert_eq!(brought(next(&mut received).await), bytes(number, 16));
            far.pair.receive.post(0, Buf::with_capacity(16)).expect("room");
        }
        (far, received)
    };
    both(sends, takes).await;
}

/// The two threads run no tasks, though a task may run the NIC.
pub async fn one_thread_waits_while_another_polls(near: Nic, far: Nic) {
    const COUNT: usize = 100;
    let ((mut near, mut sent), (mut far, mut received)) = pair(&near, &far).await;
    receives(&mut far, 64, 16);
    let waits = thread::spawn(move || {
        for number in 0..COUNT {
            near.pair.send.post(Send::new(buf(number, 16))).expect("room");
            assert_eq!(sent.wait().outcome, Ok(Done::Sent));
        }
        (near, sent)
    });
    let polls = thread::spawn(move || {
        for number in 0..COUNT {
            let completion = loop {
                match received.poll() {
                    Some(completion) => break completion,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(brought(completion), bytes(number, 16));
            far.pair.receive.post(0, Buf::with_capacity(16)).expect("room");
        }
        (far, received)
    });
    // The runtime, where there is one, goes on meanwhile.
    while !(waits.is_finished() && polls.is_finished()) {
        tokio::task::yield_now().await;
    }
    let failed = "neither of them fails";
    let ends = (waits.join().expect(failed), polls.join().expect(failed));
    drop(ends);
}
