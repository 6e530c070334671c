//! Handlers that wait: for each other, for their callers, and for room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorbell_am::{
    Call, Endpoint, EndpointConfig, Handlers, Kept, Notice, Peer, Policy, Received, ReplyId,
    RequestId, Tag, Undeliverable,
};
use tokio::sync::{Semaphore, mpsc::unbounded_channel};
use tokio::task::JoinSet;

use crate::common::{Over, endpoint, endpoint_with, everywhere, runtime};

/// Goes back and forth between two endpoints so many times more, and returns how many there were.
const NEST: Call<u64, u64> = Call::new("nest");
/// Waits until the test lets it end.
const WAIT: Call<u64, u64> = Call::new("wait");
const WAIT_WITH: Call<Vec<u8>, u64> = Call::new("wait with bytes");
const WAITS: Notice<u64> = Notice::new("waits");
const NEXT: Call<u64, u64> = Call::new("next");

const ASK: RequestId<u64> = RequestId::new(0, "ask");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

async fn nest(request: Received, levels: u64) -> u64 {
    match levels {
        0 => 0,
        _ => request.peer().call(NEST, levels - 1).await.expect("it is answered") + 1,
    }
}

fn nesting() -> Handlers {
    Handlers::new().on_async(NEST, nest)
}

/// Two endpoints that nest, the first of which has connected.
async fn both(over: Over, config: EndpointConfig) -> (Endpoint, Peer, Endpoint) {
    let near = endpoint_with(over, nesting(), config.clone()).await;
    let far = endpoint_with(over, nesting(), config).await;
    let peer = near.connect(far.name()).await.expect("it is there");
    (near, peer, far)
}

/// Makes so many calls at once, each of which needs calls of the given levels for its answer.
async fn nested(peer: &Peer, count: usize, levels: u64) {
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let peer = peer.clone();
        calls.spawn(async move { peer.call(NEST, levels).await });
    }
    while let Some(levels_there) = calls.join_next().await {
        let found = levels_there.expect("no panic").expect("it is answered");
        assert_eq!(found, levels);
    }
}

/// Sixty-four handlers ran at a time, and each waited for one that had no place to run: most calls
/// ended by their patience.
#[test]
fn two_hundred_calls_whose_handlers_call_back_are_all_answered() {
    everywhere(|over| async move {
        let (_near, peer, far) = both(over, EndpointConfig::default()).await;
        nested(&peer, 200, 1).await;
        nested(&peer, 200, 2).await;
        assert_eq!(far.bundle().statistics().malformed, 0);
    });
}

#[test]
fn a_hundred_calls_whose_handlers_nest_eight_times_are_all_answered() {
    everywhere(|over| async move {
        let (_near, peer, _far) = both(over, EndpointConfig::default()).await;
        nested(&peer, 100, 8).await;
    });
}

/// The credits are all those of requests whose handlers wait for calls that need credits.
#[test]
fn handlers_call_back_however_few_credits_there_are() {
    everywhere(|over| async move {
        for credits in [1, 2, 3, 8] {
            let config = EndpointConfig {
                credits,
                first_credits: credits,
                receives: 16,
                ..EndpointConfig::default()
            };
            let (near, peer, far) = both(over, config).await;
            nested(&peer, 200, 3).await;
            for end in [&near, &far] {
                let most = end.most_receives();
                assert!(most <= 2 * credits + 1, "{most} receives for {credits} credits");
                assert_eq!(end.bundle().statistics().malformed, 0);
            }
        }
    });
}

#[test]
fn handlers_call_back_over_connections_for_each_size() {
    everywhere(|over| async move {
        let policy = Policy::PerSize;
        let config = EndpointConfig { policy, credits: 4, ..EndpointConfig::default() };
        let (_near, peer, _far) = both(over, config).await;
        nested(&peer, 100, 4).await;
    });
}

/// A header has room for the numbers of 4095 calls.
#[test]
fn ten_thousand_calls_of_one_link_wait_at_the_same_time_and_are_all_answered() {
    runtime().block_on(async {
        let gate = Gate::closed();
        let far = endpoint(Over::Shm, gate.handlers()).await;
        let near = endpoint(Over::Shm, Handlers::new()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        let mut calls = JoinSet::new();
        for number in 0..10_000 {
            let peer = peer.clone();
            calls.spawn(async move { (number, peer.call(WAIT, number).await) });
        }
        gate.running_is(10_000).await;
        gate.opens.add_permits(10_000);
        while let Some(answered) = calls.join_next().await {
            let (number, answer) = answered.expect("no panic");
            assert_eq!(answer.expect("it is answered"), number);
        }
        let statistics = far.bundle().statistics();
        assert_eq!((statistics.malformed, statistics.panics, statistics.late), (0, 0, 0));
    });
}

/// Handlers that wait until a test lets them end, and the number of those that run.
#[derive(Clone)]
struct Gate {
    running: Arc<AtomicUsize>,
    opens: Arc<Semaphore>,
}

/// The end of a handler, however it came.
struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    fn closed() -> Self {
        Self { running: Arc::default(), opens: Arc::new(Semaphore::new(0)) }
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    async fn running_is(&self, count: usize) {
        while self.running() != count {
            tokio::task::yield_now().await;
        }
    }

    fn begins(&self) -> Ends {
        self.running.fetch_add(1, Ordering::SeqCst);
        Ends(self.running.clone())
    }

    async fn wait(self, number: u64) -> u64 {
        let _ends = self.begins();
        self.opens.acquire().await.expect("it is not closed").forget();
        number
    }

    fn handlers(&self) -> Handlers {
        Handlers::with(self.clone())
            .on_async(WAIT, |gate, _, number| gate.wait(number))
            .on_async(WAIT_WITH, |gate, _, bytes| async move {
                let number = gate.wait(bytes.len() as u64).await;
                drop(bytes);
                number
            })
            .on_async(WAITS, |gate, _, number| async move {
                gate.wait(number).await;
            })
            .on(NEXT, |_, _, number| number + 1)
            .into()
    }
}

/// Calls a handler that waits so many times, and drops the calls once all handlers run.
async fn dropped(peer: &Peer, gate: &Gate, count: usize) {
    let mut calls = JoinSet::new();
    for number in 0..count as u64 {
        let peer = peer.clone();
        calls.spawn(async move { peer.call(WAIT, number).await });
    }
    gate.running_is(count).await;
    calls.shutdown().await;
}

/// The handlers of dropped calls ended when the peer asked about them, a second later, and had the
/// places of others until then.
#[test]
fn two_hundred_dropped_calls_end_their_handlers_and_the_next_call_is_answered() {
    everywhere(|over| async move {
        for config in [EndpointConfig::default(), crate::common::of_eight_credits()] {
            let gate = Gate::closed();
            let far = endpoint_with(over, gate.handlers(), config).await;
            let near = endpoint(over, Handlers::new()).await;
            let peer = near.connect(far.name()).await.expect("it is there");
            dropped(&peer, &gate, 200).await;
            assert_eq!(peer.call(NEXT, 7).await.expect("it is answered"), 8);
            gate.running_is(0).await;
            gate.opens.add_permits(1);
            assert_eq!(peer.call(WAIT, 3).await.expect("it is answered"), 3);
            assert_eq!(far.bundle().statistics().malformed, 0);
        }
    });
}

/// The clock stands, so that nothing is asked from time to time.
#[test]
fn a_dropped_call_ends_its_handler_without_any_time_passing() {
    runtime().block_on(async {
        let gate = Gate::closed();
        let far = endpoint(Over::Shm, gate.handlers()).await;
        let near = endpoint(Over::Shm, Handlers::new()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        peer.call(NEXT, 1).await.expect("it is answered");
        tokio::time::pause();
        // While another thread works for the runtime, the clock does not go on by itself.
        let (goes_on, waits) = std::sync::mpsc::channel::<()>();
        let standing = tokio::task::spawn_blocking(move || waits.recv());
        let before = tokio::time::Instant::now();
        for count in [1, 3, 200] {
            dropped(&peer, &gate, count).await;
            gate.running_is(0).await;
        }
        assert_eq!(peer.call(NEXT, 7).await.expect("it is answered"), 8);
        gate.running_is(0).await;
        assert_eq!(tokio::time::Instant::now(), before, "the clock stands");
        drop(goes_on);
        let _ = standing.await;
    });
}

/// The deadline of the caller ends the call, as its drop does.
#[test]
fn a_call_whose_deadline_passes_ends_its_handler() {
    everywhere(|over| async move {
        let gate = Gate::closed();
        let far = endpoint(over, gate.handlers()).await;
        let near = endpoint(over, Handlers::new()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        let hasty = peer.within(Duration::from_millis(20));
        for number in 0..20 {
            assert!(hasty.call(WAIT, number).await.is_err());
        }
        gate.running_is(0).await;
        let receives = far.most_receives();
        assert!(receives <= 513, "{receives}");
    });
}

/// Answers of requests that are no calls come late, too, each to the reply handler or as one that
/// comes back.
#[test]
fn requests_that_are_no_calls_are_answered_late_by_their_reply_handlers() {
    everywhere(|over| async move {
        let (told, mut came) = unbounded_channel();
        let back = told.clone();
        let near = Handlers::new()
            .reply(TOLD, move |_, number| told.send(number).expect("it is awaited"))
            .returned(move |returned| {
                assert_eq!(returned.handler(), Some(ASK.index()));
                assert_eq!(returned.why(), Undeliverable::Panicked);
                back.send(1000).expect("it is awaited");
            });
        let gate = Gate::closed();
        let waits = gate.clone();
        let far = Handlers::new().request_async(ASK, move |request, number| {
            let gate = waits.clone();
            async move {
                match (gate.wait(number).await, number % 3) {
                    (_, 0) => request.reply(TOLD, number),
                    (_, 1) => std::panic::resume_unwind(Box::new("as it is to")),
                    _ => {}
                }
            }
        });
        let far = endpoint_with(over, far, crate::common::of_eight_credits()).await;
        let near = endpoint(over, near).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for number in 0..99 {
            peer.request(ASK, number).await.expect("it is there");
        }
        gate.running_is(99).await;
        gate.opens.add_permits(99);
        let mut all = Vec::new();
        for _ in 0..66 {
            all.push(came.recv().await.expect("it comes"));
        }
        all.sort_unstable();
        let expected = (0..33).map(|third| 3 * third).chain(std::iter::repeat_n(1000, 33));
        assert_eq!(all, expected.collect::<Vec<u64>>());
        assert_eq!(near.bundle().statistics().malformed, 0);
    });
}

/// Each is sent by the only credit that there is.
#[test]
fn a_reply_longer_than_a_packet_comes_late_with_all_its_words_and_bytes() {
    const MANY: RequestId<[u64; 20]> = RequestId::new(1, "many");
    const BACK: ReplyId<[u64; 20]> = ReplyId::new(1, "back");
    everywhere(|over| async move {
        let far = Handlers::new().request_async(MANY, |request: Kept, words| async move {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            let payload = vec![words[0] as u8; 4000];
            request.reply_with(BACK, words, payload).expect("it fits");
        });
        let one = EndpointConfig { credits: 1, first_credits: 1, ..EndpointConfig::default() };
        let far = endpoint_with(over, far, one.clone()).await;
        let near = endpoint_with(over, Handlers::new(), one).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for number in 0..50 {
            let reply = peer.call(MANY, [number; 20]).await.expect("it is answered");
            assert_eq!(reply.arguments(BACK), Ok([number; 20]));
            assert!(reply.payload() == vec![number as u8; 4000]);
        }
    });
}

/// Has handlers of notices wait until some come back, and returns how many wait.
async fn fills(over: Over, far: &Endpoint, gate: &Gate) -> (Endpoint, Peer, usize) {
    let returned = Arc::new(AtomicUsize::new(0));
    let counts = returned.clone();
    let handlers = Handlers::new().returned(move |returned| {
        assert_eq!(returned.why(), Undeliverable::Busy);
        counts.fetch_add(1, Ordering::SeqCst);
    });
    let flooder = endpoint(over, handlers).await;
    let peer = flooder.connect(far.name()).await.expect("it is there");
    let (back, mut sent) = (|| returned.load(Ordering::SeqCst), 0);
    while back() == 0 {
        peer.notify(WAITS, sent as u64).await.expect("it is there");
        sent += 1;
    }
    while gate.running() + back() != sent {
        tokio::task::yield_now().await;
    }
    (flooder, peer, gate.running())
}

#[test]
fn the_65537th_handler_that_waits_is_refused_at_once_and_others_go_on() {
    runtime().block_on(async {
        let gate = Gate::closed();
        let far = endpoint(Over::Shm, gate.handlers()).await;
        let (_flooder, peer, count) = fills(Over::Shm, &far, &gate).await;
        assert_eq!(count, 65_536);
        let refused = peer.call(WAIT, 1).await.expect_err("there is no room");
        assert_eq!(refused.undeliverable(), Some(Undeliverable::Busy), "{refused}");
        assert_eq!(peer.call(NEXT, 1).await.expect("it is no task"), 2);
        assert_eq!(gate.running(), 65_536, "they go on");
        gate.opens.add_permits(1);
        gate.running_is(65_535).await;
        let waits = peer.clone();
        let again = tokio::spawn(async move { waits.call(WAIT, 5).await });
        gate.running_is(65_536).await;
        gate.opens.add_permits(65_536);
        assert_eq!(again.await.expect("no panic").expect("it is answered"), 5);
        gate.running_is(0).await;
    });
}

#[test]
fn a_peer_with_few_handlers_finds_room_when_another_has_taken_all() {
    everywhere(|over| async move {
        let gate = Gate::closed();
        let config = EndpointConfig { tasks: 320, ..EndpointConfig::default() };
        let far = endpoint_with(over, gate.handlers(), config).await;
        let (_flooder, flooder, count) = fills(over, &far, &gate).await;
        assert_eq!(count, 320);
        let other = endpoint(over, Handlers::new()).await;
        let peer = other.connect(far.name()).await.expect("it is there");
        let mut calls = JoinSet::new();
        for number in 0..16 {
            let peer = peer.clone();
            calls.spawn(async move { peer.call(WAIT, number).await });
        }
        gate.running_is(336).await;
        for busy in [&flooder, &peer] {
            let refused = busy.call(WAIT, 1).await.expect_err("it has many");
            assert_eq!(refused.undeliverable(), Some(Undeliverable::Busy), "{refused}");
        }
        gate.opens.add_permits(336);
        while let Some(answer) = calls.join_next().await {
            answer.expect("no panic").expect("it is answered");
        }
        gate.running_is(0).await;
    });
}

#[test]
fn requests_of_handlers_that_wait_keep_64_mebibytes_at_most() {
    runtime().block_on(async {
        let gate = Gate::closed();
        let far = endpoint(Over::Shm, gate.handlers()).await;
        let near = endpoint(Over::Shm, Handlers::new()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        let mut calls = JoinSet::new();
        let call = |calls: &mut JoinSet<_>| {
            let peer = peer.clone();
            calls.spawn(async move { peer.call(WAIT_WITH, vec![7; 4096]).await });
        };
        for _ in 0..20_000 {
            call(&mut calls);
        }
        let refused = calls.join_next().await.expect("one is refused").expect("no panic");
        let refused = refused.expect_err("there is no room");
        assert_eq!(refused.undeliverable(), Some(Undeliverable::Busy), "{refused}");
        let mut count = 1;
        while gate.running() + count < 20_000 {
            tokio::select! {
                biased;
                refused = calls.join_next() => {
                    assert!(refused.expect("some").expect("no panic").is_err());
                    count += 1;
                }
                () = tokio::task::yield_now() => {}
            }
        }
        let kept = gate.running() * 4096;
        assert!((16 << 20..=64 << 20).contains(&kept), "{kept} bytes are kept");
        assert_eq!(peer.call(NEXT, 1).await.expect("others go on"), 2);
        gate.opens.add_permits(gate.running());
        while let Some(answer) = calls.join_next().await {
            assert_eq!(answer.expect("no panic").ok(), Some(4096));
        }
        // The room is free again.
        gate.opens.add_permits(1);
        assert_eq!(peer.call(WAIT_WITH, vec![7; 4096]).await.expect("it is answered"), 4096);
    });
}

/// The handler ends, and gives the request to another task, which holds it.
#[test]
fn a_request_that_outlives_its_handler_keeps_its_room() {
    everywhere(|over| async move {
        let (keeps, mut kept) = unbounded_channel::<Kept>();
        let far = Handlers::new().request_async(ASK, move |request, _| {
            let keeps = keeps.clone();
            async move {
                tokio::task::yield_now().await;
                keeps.send(request).unwrap_or_else(|_| panic!("it is awaited"));
            }
        });
        let config = EndpointConfig { tasks: 3, ..crate::common::of_eight_credits() };
        let far = endpoint_with(over, far, config).await;
        let patient = EndpointConfig { patience: LONG, ..EndpointConfig::default() };
        let near = endpoint_with(over, Handlers::new(), patient).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        let mut calls = JoinSet::new();
        for number in 0..3 {
            let peer = peer.clone();
            calls.spawn(async move { peer.call(ASK, number).await });
        }
        let mut held = Vec::new();
        while held.len() < 3 {
            held.push(kept.recv().await.expect("it comes"));
        }
        let refused = peer.call(ASK, 3).await.expect_err("three are held");
        assert_eq!(refused.undeliverable(), Some(Undeliverable::Busy), "{refused}");
        held.into_iter().for_each(|request| request.reply(TOLD, 1));
        while let Some(answer) = calls.join_next().await {
            answer.expect("no panic").expect("it is answered");
        }
        let again = peer.clone();
        let again = tokio::spawn(async move { again.call(ASK, 4).await });
        kept.recv().await.expect("there is room").reply(TOLD, 4);
        again.await.expect("no panic").expect("it is answered");
    });
}
