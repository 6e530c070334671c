//! Credits, company, and what handlers may do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::{
    Admits, Bundle, BundleConfig, CallError, ConnectError, Credits, Endpoint, EndpointConfig,
    Event, Flow, Handlers, Kept, Peer, Policy, ReplyId, RequestId, SegmentMemory, SendError, Tag,
    Undeliverable, Unwelcome, Words,
};
use doorbell_verbs::{Buf, Memory, Nic, Region, SharedMemory};

use crate::common::{Over, endpoint, endpoint_with, everywhere, mapped, undeliverable};

const NOTE: RequestId<Words> = RequestId::new(0, "note");
const ASK: RequestId<u64> = RequestId::new(1, "ask");
const KEEP: RequestId<u64> = RequestId::new(2, "keep");
const PUT: RequestId<u64> = RequestId::new(3, "put");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

fn credits(credits: usize) -> EndpointConfig {
    EndpointConfig { credits, first_credits: credits, ..EndpointConfig::default() }
}

/// Checks that messages come in their order, each with its words and its payload.
fn noting(next: &Arc<AtomicU64>) -> Handlers {
    let next = next.clone();
    Handlers::new()
        .request(NOTE, move |request, words| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (expected, payload) = note(number);
            assert!(words == expected && request.payload() == payload, "message {number}");
        })
        .request(ASK, |request, number| request.reply(TOLD, number + 1))
}

fn note(number: u64) -> (Words, Vec<u8>) {
    let words = Words::new(&[number; 16][..number as usize % 17]).expect("few");
    let len = [0, 3, 0, 700, 0, 60, 2000][number as usize % 7];
    (words, (0..len).map(|at| (at + number) as u8).collect())
}

#[test]
fn messages_of_all_sizes_come_in_their_order_with_however_many_credits() {
    everywhere(|over| async move {
        for k in [1, 2, 8, 256] {
            let next = Arc::new(AtomicU64::new(0));
            let near = endpoint_with(over, Handlers::new(), credits(k)).await;
            let far = endpoint_with(over, noting(&next), credits(k)).await;
            let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
            for number in 0..3000 {
                let (words, payload) = note(number);
                peer.request_with(NOTE, words, &payload).await.expect("it is there");
            }
            let told = peer.call(ASK, 1).await.expect("it is answered");
            assert_eq!(told.arguments(TOLD), Ok(2));
            assert_eq!(next.load(Ordering::Relaxed), 3000, "{k} credits");
            assert_eq!(far.bundle().statistics().panics, 0, "each was as expected");
        }
    });
}

/// Mixes flow control by credits on one side with flow control by the NIC on the other. A peer that
/// leaves it to its NIC may have no receive, and is sent again what it refused.
#[test]
fn an_endpoint_with_credits_and_one_with_flow_control_by_the_nic_understand_each_other() {
    everywhere(|over| async move {
        for nic_at_the_near_end in [true, false] {
            let next = Arc::new(AtomicU64::new(0));
            let flow = Flow::Nic { receives: 1 };
            let by_nic = EndpointConfig { flow, ..credits(64) };
            let configs = match nic_at_the_near_end {
                true => [by_nic, credits(64)],
                false => [credits(64), by_nic],
            };
            let [near, far] = configs;
            let near = endpoint_with(over, Handlers::new(), near).await;
            let far = endpoint_with(over, noting(&next), far).await;
            let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
            for number in 0..300 {
                let (words, payload) = note(number);
                peer.request_with(NOTE, words, &payload).await.expect("it is there");
            }
            let told = peer.call(ASK, 1).await.expect("it is answered");
            assert_eq!(told.arguments(TOLD), Ok(2));
            assert_eq!(next.load(Ordering::Relaxed), 300);
        }
    });
}

#[test]
fn many_tasks_share_the_credits_and_each_has_its_own_answer() {
    everywhere(|over| async move {
        let far = Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
        let (_near, peer, _far) = mapped(over, Handlers::new(), far).await;
        let tasks: Vec<_> = (0..40)
            .map(|task| {
                let peer = peer.clone();
                tokio::spawn(async move {
                    for round in 0..100 {
                        let number = task * 1000 + round;
                        let told = peer.call(ASK, number).await.expect("it is answered");
                        assert_eq!(told.arguments(TOLD), Ok(number + 1));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("it does not fail");
        }
    });
}

#[test]
fn a_credit_can_be_tried_awaited_and_given_up() {
    everywhere(|over| async move {
        let kept: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let keeps = kept.clone();
        let far = Handlers::new().request(KEEP, move |request, _| {
            keeps.lock().expect("nobody failed").push(request.keep());
        });
        let (_near, peer, _far) = mapped(over, Handlers::new(), far).await;
        for number in 0..4 {
            let credit = peer.try_credit().expect("it is there").expect("one of eight");
            credit.request(KEEP, number).expect("a word");
        }
        for number in 4..8 {
            assert_eq!(peer.try_request(KEEP, &number), Ok(true));
        }
        assert!(peer.try_credit().expect("it is there").is_none());
        assert_eq!(peer.try_request(KEEP, &8), Ok(false));
        let within = Duration::from_millis(20);
        let Err(SendError::NoCredit { credits, .. }) = peer.within(within).credit().await else {
            panic!("there is none")
        };
        assert_eq!(credits, Credits { under_way: 8, given_up: 0 });
        while kept.lock().expect("nobody failed").len() < 8 {
            tokio::task::yield_now().await;
        }
        // Two of eight are told of at once.
        kept.lock().expect("nobody failed").truncate(6);
        let credit = peer.credit().await.expect("one comes back");
        drop(credit);
        assert!(peer.try_credit().expect("it is there").is_some());
    });
}

/// A sender with few credits must be told of handled requests before it runs out of credits.
#[test]
fn a_sender_that_uses_fewer_credits_than_it_is_granted_goes_on() {
    everywhere(|over| async move {
        let next = Arc::new(AtomicU64::new(0));
        let near = endpoint_with(over, Handlers::new(), credits(2)).await;
        let far = endpoint_with(over, noting(&next), credits(256)).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for number in 0..100 {
            let (words, payload) = note(number);
            peer.request_with(NOTE, words, &payload).await.expect("it is there");
        }
        peer.call(ASK, 1).await.expect("it is answered");
        assert_eq!(next.load(Ordering::Relaxed), 100);
    });
}

#[test]
fn replies_run_their_handlers_and_what_comes_back_another() {
    everywhere(|over| async move {
        let (told, came) = tokio::sync::mpsc::unbounded_channel();
        let back = told.clone();
        let near = Handlers::new()
            .reply(TOLD, move |_, number| told.send((number, None)).expect("it is awaited"))
            .returned(move |returned| {
                let number = returned.words().next().expect("it came back");
                back.send((number, Some(returned.why()))).expect("it is awaited");
            });
        let far = Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
        let (_near, peer, far) = mapped(over, near, far).await;
        let mut came = came;
        peer.request(ASK, 4).await.expect("it is there");
        assert_eq!(came.recv().await, Some((5, None)));
        peer.request(PUT, 4).await.expect("it is there");
        assert_eq!(came.recv().await, Some((4, Some(Undeliverable::NoHandler))));
        far.set_admits(Admits::Nobody);
        peer.request(ASK, 6).await.expect("it is there");
        assert_eq!(came.recv().await, Some((6, Some(Undeliverable::WrongTag))));
    });
}

#[test]
fn a_peer_that_has_mapped_the_endpoint_is_mapped_over_the_same_connection() {
    everywhere(|over| async move {
        let serve =
            || Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
        let (near, peer, far) = mapped(over, serve(), serve()).await;
        far.set_admits(Tag(1));
        near.set_admits(Tag(2));
        let back = far.map(3, near.name(), Tag(2)).await.expect("it is there");
        let (there, here) = tokio::join!(peer.call(ASK, 1), back.call(ASK, 10));
        assert_eq!(there.expect("it is answered").arguments(TOLD), Ok(2));
        assert_eq!(here.expect("it is answered").arguments(TOLD), Ok(11));
        assert!(matches!(
            far.map(3, near.name(), Tag(2)).await,
            Err(ConnectError::Taken { index: 3, .. })
        ));
        near.unmap(0).await.expect("it was mapped");
        assert_eq!(near.unmap(0).await, Err(SendError::NotMapped(0)));
        back.call(ASK, 1).await.expect("the connection is the other's, who goes on");
        far.unmap(3).await.expect("it was mapped");
        for peer in [peer, back] {
            // Whoever has not heard of it yet does by this.
            let gone = peer.call(ASK, 1).await.err();
            let sent = matches!(gone, Some(CallError::PeerGone { .. }));
            let unsent =
                matches!(gone, Some(CallError::NotSent { why: SendError::Gone { .. }, .. }));
            assert!(sent || unsent, "{gone:?}");
        }
    });
}

#[test]
fn where_a_peer_was_that_has_gone_another_is_mapped() {
    everywhere(|over| async move {
        let serve =
            || Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
        let (near, peer, far) = mapped(over, Handlers::new(), serve()).await;
        let next = endpoint(over, serve()).await;
        assert!(matches!(
            near.map(0, next.name(), Tag(1)).await,
            Err(ConnectError::Taken { index: 0, .. })
        ));
        drop(far);
        while peer.call(ASK, 1).await.is_ok() {}
        let next = near.map(0, next.name(), Tag(1)).await.expect("the place is free");
        assert_eq!(next.call(ASK, 1).await.expect("it is answered").arguments(TOLD), Ok(2));
    });
}

/// The first gets all there is, as far as others are not to go without. Then it is idle.
#[test]
fn receives_that_an_idle_peer_does_not_need_are_others() {
    everywhere(|over| async move {
        not_needed(over, Policy::Together).await;
        not_needed(over, Policy::PerSize).await;
    });
}

async fn not_needed(over: Over, policy: Policy) {
    let few = EndpointConfig { receives: 8, policy, ..credits(8) };
    let serve = Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
    let server = endpoint_with(over, serve, few).await;
    let with = || EndpointConfig { policy, ..EndpointConfig::default() };
    let mut all = Vec::new();
    // Of eight receives two are for answers, and one for what is being handled.
    for number in 0..5 {
        let client = endpoint_with(over, Handlers::new(), with()).await;
        let peer = client.map(0, server.name(), Tag(1)).await.expect("there is a receive");
        for round in 0..20 {
            for payload in [&[][..], &[7; 300], &[7; 600]] {
                let told = peer.call_with(ASK, round, payload).await;
                let told = told.unwrap_or_else(|why| panic!("of client {number}: {why}"));
                assert_eq!(told.arguments(TOLD), Ok(round + 1), "of client {number}");
            }
        }
        all.push((client, peer));
    }
    for (_, peer) in &all {
        let calls = (0..4).map(|round| peer.call(ASK, round));
        for call in calls {
            call.await.expect("each has a credit still");
        }
    }
    let most = if policy == Policy::PerSize { 3 * 8 } else { 8 };
    assert!(server.most_receives() <= most, "{} receives", server.most_receives());
    let other = endpoint_with(over, Handlers::new(), with()).await;
    let none = other.map(0, server.name(), Tag(1)).await.err();
    assert!(
        matches!(none, Some(ConnectError::Unwelcome { why: Unwelcome::Refused(_), .. })),
        "{none:?}"
    );
}

/// Each that is left behind would have kept a receive, of which there are four.
#[test]
fn a_map_that_is_given_up_leaves_nothing_behind() {
    everywhere(|over| async move {
        given_up(over, Policy::Together).await;
        given_up(over, Policy::PerSize).await;
    });
}

async fn given_up(over: Over, policy: Policy) {
    let few = EndpointConfig { receives: 4, policy, ..credits(1) };
    let asks = || Handlers::new().request(ASK, |_, _| {});
    let near = endpoint_with(over, asks(), few).await;
    let with = || EndpointConfig { policy, ..EndpointConfig::default() };
    let far = endpoint_with(over, asks(), with()).await;
    for turns in 0..200 {
        let map = near.map(0, far.name(), Tag(1));
        let after = async {
            for _ in 0..turns % 20 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            mapped = map => {
                mapped.expect("there are receives");
                near.unmap(0).await.expect("it was mapped");
            }
            () = after => {}
        }
    }
    const OTHER: RequestId<u64> = RequestId::new(1, "other");
    let other = Handlers::new().request(OTHER, |_, _| {});
    let other = endpoint_with(over, other, with()).await;
    for _ in 0..10 {
        let refused = near.map(0, other.name(), Tag(1)).await.err();
        assert!(
            matches!(
                refused,
                Some(ConnectError::Unwelcome { why: Unwelcome::OtherHandlers { .. }, .. })
            ),
            "{refused:?}"
        );
    }
    near.map(0, far.name(), Tag(1)).await.expect("there are receives");
}

#[test]
fn a_peer_that_shows_no_tag_does_not_learn_where_the_segment_is() {
    everywhere(|over| async move {
        let config = EndpointConfig {
            segment: Some(Region::new(64).into()),
            admits: Tag(1).into(),
            ..EndpointConfig::default()
        };
        let far = endpoint_with(over, Handlers::new().request(ASK, |_, _| {}), config).await;
        let near = endpoint(over, Handlers::new()).await;
        let mut events = near.events();
        let back = far.map(0, near.name(), None).await.expect("it is there");
        let Ok(Event::Linked(peer)) = events.recv().await else { panic!("it is mapped") };
        let place = async |peer: &Peer| peer.place(ASK, 1, 0, Buf::from(vec![1; 8])).await;
        let refused = place(&peer).await.err();
        assert!(matches!(refused, Some(SendError::Segment { room: 0, .. })), "{refused:?}");
        near.map(1, far.name(), Tag(1)).await.expect("it is admitted");
        place(&peer).await.expect("the connection is the same").done().await.expect("it is there");
        drop(back);
    });
}

#[test]
fn a_mismatch_of_handlers_is_named() {
    everywhere(|over| async move {
        const OTHER: RequestId<u64> = RequestId::new(1, "answer");
        let near = endpoint(over, Handlers::new().request(OTHER, |_, _| {})).await;
        let far = endpoint(over, Handlers::new().request(ASK, |_, _| {})).await;
        match near.map(0, far.name(), Tag(1)).await.err() {
            Some(ConnectError::Unwelcome {
                why: Unwelcome::OtherHandlers { table: "requests", index: 1, there },
                ..
            }) => {
                assert_eq!(there, "ask");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_handler_that_never_replies_costs_a_time_and_no_credit() {
    everywhere(|over| async move {
        let kept: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let keeps = kept.clone();
        let far = Handlers::new()
            .request(KEEP, move |request, _| {
                keeps.lock().expect("nobody failed").push(request.keep());
            })
            .request(ASK, |request, number| request.reply(TOLD, number + 1));
        let patience = Duration::from_millis(30);
        let config = EndpointConfig { patience, ..credits(2) };
        let near = endpoint_with(over, Handlers::new(), config).await;
        let far = endpoint_with(over, far, credits(2)).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for round in 0..3 {
            let calls = tokio::join!(peer.call(KEEP, round), peer.call(KEEP, round));
            for call in [calls.0, calls.1] {
                assert_eq!(undeliverable(call), Undeliverable::NoReply);
            }
        }
        let told = peer.call(ASK, 1).await.expect("there are credits");
        // What is answered now is too late.
        for kept in kept.lock().expect("nobody failed").drain(..) {
            kept.reply(TOLD, 0);
        }
        assert_eq!(told.arguments(TOLD), Ok(2));
        assert_eq!(peer.call(ASK, 2).await.expect("as before").arguments(TOLD), Ok(3));
    });
}

/// However long its requester would have waited.
#[test]
fn nothing_counts_the_time_of_a_request_whose_peer_has_gone() {
    everywhere(|over| async move {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let (keeps, mut kept) = tokio::sync::mpsc::unbounded_channel();
        let handlers = Handlers::new()
            .request(KEEP, move |request, _| keeps.send(request.keep()).expect("it is awaited"));
        let far = endpoint(over, handlers).await;
        let mut events = far.events();
        let before = tasks();
        let patience = Duration::from_secs(3600);
        let config = EndpointConfig { patience, ..credits(2) };
        let near = endpoint_with(over, Handlers::new().request(KEEP, |_, _| {}), config).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        peer.request(KEEP, 1).await.expect("it is there");
        let _kept = kept.recv().await.expect("it is asked");
        drop((peer, near));
        while !matches!(events.recv().await.expect("it goes"), Event::Gone(..)) {}
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_handler_that_sends_a_request_is_told_that_it_may_not() {
    everywhere(|over| async move {
        let (told, mut came) = tokio::sync::mpsc::unbounded_channel();
        let far = Handlers::new().request(ASK, move |request, _| {
            told.send(request.peer().try_credit().err()).expect("it is awaited");
        });
        let (_near, peer, _far) = mapped(over, Handlers::new(), far).await;
        peer.request(ASK, 1).await.expect("it is there");
        assert_eq!(came.recv().await, Some(Some(SendError::InHandler)));
    });
}

#[test]
fn placed_data_lies_in_the_segment_when_its_handler_runs() {
    everywhere(|over| async move {
        for policy in [Policy::Together, Policy::Apart, Policy::PerSize] {
            placed_and_handled(over, policy, Region::new(1 << 20).into()).await;
            let shared = SharedMemory::new(1 << 20).expect("memory");
            placed_and_handled(over, policy, shared.into()).await;
        }
    });
}

async fn placed_and_handled(over: Over, policy: Policy, segment: SegmentMemory) {
    let (told, mut came) = tokio::sync::mpsc::unbounded_channel();
    let sees = segment.region().clone();
    let far = Handlers::new().request(NOTE, move |request, words| {
        let placed = request.placed().expect("it was placed");
        let mut bytes = vec![0; (placed.end - placed.start) as usize];
        sees.read_at(placed.start as usize, &mut bytes).expect("it is within");
        told.send((words, placed, bytes)).expect("it is awaited");
    });
    let segment = Some(segment);
    let config = EndpointConfig { segment, policy, ..EndpointConfig::default() };
    let near = EndpointConfig { policy, ..EndpointConfig::default() };
    let near = endpoint_with(over, Handlers::new(), near).await;
    let far = endpoint_with(over, far, config).await;
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    for (count, len) in [(0, 1), (0, 70_000), (1, 8), (16, 5000), (0, 0)] {
        let words = Words::new(&[7; 16][..count]).expect("few");
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251 + count) as u8).collect();
        let data = Buf::from(bytes.clone());
        let placing = peer.place(NOTE, words, 4096, data).await.expect("it fits");
        let seen = came.recv().await.expect("it comes");
        assert!(seen == (words, 4096..4096 + len as u64, bytes), "{count} words, {len} bytes");
        let Memory::Buf(back) = placing.done().await.expect("it is there") else {
            panic!("it was a buffer")
        };
        assert_eq!(back.len(), len);
    }
    let beyond = peer.place(NOTE, Words::NONE, (1 << 20) - 3, Buf::from(vec![0; 4])).await.err();
    let room = 1 << 20;
    let beyond = beyond.map(|why| why.to_string()).unwrap_or_default();
    assert!(beyond.ends_with(&format!("it ends at {room}")), "{beyond}");
}

/// The peer that has mapped the segment writes there itself. What it places is there in order,
/// before and after the mapping.
#[test]
fn a_shared_segment_is_mapped_when_something_is_placed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        const LEN: usize = 10_000;
        let segment = SegmentMemory::from(SharedMemory::new(2 * LEN).expect("memory"));
        let (sees, next) = (segment.region().clone(), Arc::new(AtomicU64::new(0)));
        let handled = next.clone();
        let far = Handlers::new().request(NOTE, move |request, _| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let at = number as usize % 2 * LEN;
            assert_eq!(request.placed(), Some(at as u64..(at + LEN) as u64));
            let mut bytes = vec![0; LEN];
            sees.read_at(at, &mut bytes).expect("it is within");
            assert!(bytes.iter().all(|&byte| byte == number as u8), "{number} is not there");
        });
        let config = EndpointConfig { segment: Some(segment), ..EndpointConfig::default() };
        let far = endpoint_with(Over::Shm, far, config).await;
        let name = format!("shm:am-{}/maps", std::process::id());
        let nic = Nic::open(&name).await.expect("nobody else has that name");
        let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
        let near = Endpoint::on_bundle(&bundle, Handlers::new()).await.expect("room");
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        let written_here = || nic.statistics().nic.written_here;
        let (mut number, mut more) = (0, 20);
        while more > 0 {
            // It is mapped sooner or later, and some more are placed then.
            more -= u64::from(written_here() > 0);
            assert!(number < 100_000, "the segment was never mapped");
            let data = Buf::from(vec![number as u8; LEN]);
            let at = number % 2 * LEN as u64;
            let placing = peer.place(NOTE, Words::NONE, at, data).await.expect("it fits");
            placing.done().await.expect("it is there");
            number += 1;
            if number.is_multiple_of(2) {
                while handled.load(Ordering::Relaxed) < number {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert!(written_here() >= 19, "{} of {number}", written_here());
    });
}

#[test]
fn requests_wait_when_a_poll_is_not_to_run_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let next = Arc::new(AtomicU64::new(0));
        let near = endpoint(Over::Shm, Handlers::new()).await;
        let bundle = crate::common::bundle(Over::Shm);
        let far = Endpoint::on_bundle(&bundle, noting(&next)).await.expect("room");
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for number in 0..5 {
            let (words, payload) = note(number);
            peer.request_with(NOTE, words, &payload).await.expect("it is there");
        }
        // Nobody else runs on this thread until something is awaited.
        assert!((0..1000).any(|_| bundle.poll(false) > 0), "something comes");
        assert_eq!(next.load(Ordering::Relaxed), 0);
        bundle.poll(true);
        assert!(next.load(Ordering::Relaxed) > 0);
    });
}
