//! Requests, replies and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_am::{
    CallError, EndpointConfig, Handlers, ManyWords, Policy, ReplyId, RequestId, SendError, Tag,
    Undeliverable, Unsent, Words,
};

use crate::common::{ADD, SUM, endpoint_with, everywhere, mapped, undeliverable};

const ECHO: RequestId<Words> = RequestId::new(1, "echo");
const PANIC: RequestId<()> = RequestId::new(2, "panic");
const NOTE: RequestId<u64> = RequestId::new(3, "note");
const LATER: RequestId<u64> = RequestId::new(4, "later");
const NOBODYS: RequestId<u64> = RequestId::new(5, "nobody's");
const BACK: ReplyId<Words> = ReplyId::new(1, "back");

fn server() -> Handlers {
    Handlers::new()
        .request(ADD, |request, (a, b)| request.reply(SUM, a + b))
        .request(ECHO, |request, words| {
            let payload = request.payload().to_vec();
            request.reply_with(BACK, words, &payload).expect("it was short enough to come");
        })
        .request(PANIC, |_, ()| panic!("as it should"))
        .request_async(LATER, |request, number| async move {
            tokio::task::yield_now().await;
            request.reply(SUM, number + 1);
        })
}

#[test]
fn a_call_is_answered_by_what_its_handler_replies() {
    everywhere(|over| async move {
        let (_near, peer, _far) = mapped(over, Handlers::new(), server()).await;
        for number in 0..1000 {
            let reply = peer.call(ADD, (number, 2)).await.expect("it is answered");
            assert_eq!(reply.arguments(SUM), Ok(number + 2));
        }
        let reply = peer.call(LATER, 7).await.expect("it is answered");
        assert_eq!(reply.arguments(SUM), Ok(8));
    });
}

#[test]
fn words_and_payloads_of_every_length_come_and_come_back() {
    everywhere(|over| async move {
        let (_near, peer, _far) = mapped(over, Handlers::new(), server()).await;
        for count in 0..=16 {
            let words = Words::new(&[u64::MAX - 3; 16][..count]).expect("few");
            for len in [0, 1, 7, 8, 63, 64, 65, 1000, 4095, 4096] {
                let payload: Vec<u8> = (0..len).map(|at| (at * 7 + count) as u8).collect();
                let reply = peer.call_with(ECHO, words, &payload).await.expect("it is answered");
                assert_eq!(reply.arguments(BACK), Ok(words));
                assert!(reply.payload() == payload, "{count} words, {len} bytes");
            }
        }
    });
}

#[test]
fn words_beyond_sixteen_take_the_place_of_payload() {
    const LONG: RequestId<ManyWords> = RequestId::new(6, "long");
    const LONG_BACK: ReplyId<ManyWords> = ReplyId::new(2, "long back");
    const LONG_NOBODYS: RequestId<ManyWords> = RequestId::new(7, "long and nobody's");
    everywhere(|over| async move {
        let far = Handlers::new().request(LONG, |request, words| {
            let payload = request.payload().to_vec();
            request.reply_with(LONG_BACK, words, &payload).expect("it was short enough to come");
        });
        let (returns, mut returned) = tokio::sync::mpsc::unbounded_channel();
        let near = Handlers::new().returned(move |it| {
            let _ = returns.send((it.words().collect::<Vec<_>>(), it.payload().to_vec()));
        });
        let (_near, peer, _far) = mapped(over, near, far).await;
        let most = peer.longest_payload();
        // All but 16, and their number.
        for count in [17, 29, 30, 31, 32, 100, most / 8 + 15] {
            let words = ManyWords((0..count as u64).map(|word| word * word).collect());
            let room = most - 8 * (count - 15);
            for len in [0, 1, room / 2, room].map(|len| len.min(room)) {
                let payload: Vec<u8> = (0..len).map(|at| (at * 7 + count) as u8).collect();
                let reply = peer.call_with(LONG, words.clone(), &payload).await;
                let reply = reply.unwrap_or_else(|why| panic!("{count} words, {len} bytes: {why}"));
                assert_eq!(reply.arguments(LONG_BACK), Ok(words.clone()));
                assert!(reply.payload() == payload, "{count} words, {len} bytes");
                let sent = peer.request_with(LONG_NOBODYS, words.clone(), &payload).await;
                sent.expect("there is a credit");
                assert!(returned.recv().await == Some((words.0.clone(), payload)));
            }
            let more = peer.call_with(LONG, words.clone(), &vec![0; room + 1]).await;
            let (peer, what) = (peer.to_string().into(), Unsent::Message);
            let refused = SendError::TooLong { peer, what, len: most + 1, most };
            assert!(matches!(more, Err(CallError::NotSent { why, .. }) if why == refused));
        }
    });
}

#[test]
fn a_request_that_is_not_delivered_comes_back_with_the_reason() {
    everywhere(|over| async move {
        let (_near, peer, far) = mapped(over, Handlers::new(), server()).await;
        assert_eq!(undeliverable(peer.call(PANIC, ()).await), Undeliverable::Panicked);
        assert_eq!(undeliverable(peer.call(NOBODYS, 1).await), Undeliverable::NoHandler);
        const OTHER: RequestId<u64> = RequestId::new(0, "add");
        assert_eq!(undeliverable(peer.call(OTHER, 1).await), Undeliverable::Arguments);
        far.set_admits(Tag(2));
        assert_eq!(undeliverable(peer.call(ADD, (1, 2)).await), Undeliverable::WrongTag);
        far.set_admits(Tag(1));
        assert!(peer.call(ADD, (1, 2)).await.is_ok());
        drop(far);
        // Known before it is sent, or not.
        match peer.call(ADD, (1, 2)).await {
            Err(CallError::PeerGone { .. }) => {}
            Err(CallError::NotSent { why: SendError::Gone { .. }, .. }) => {}
            other => panic!("{other:?}"),
        }
    });
}

/// By whichever connection it went, whatever of it was still to leave.
#[test]
fn an_endpoint_that_unmaps_all_peers_leaves_no_request_unhandled() {
    const LENGTHS: [usize; 6] = [0, 3000, 300, 30, 3, 3000];
    everywhere(|over| async move {
        for policy in [Policy::Together, Policy::Apart, Policy::PerSize] {
            let handled = Arc::new(AtomicU64::new(0));
            let noted = handled.clone();
            let far = Handlers::new().request(NOTE, move |request, _| {
                noted.fetch_add(request.payload().len() as u64, Ordering::Relaxed);
            });
            let config = EndpointConfig {
                policy,
                credits: 16,
                first_credits: 16,
                ..EndpointConfig::default()
            };
            let near = endpoint_with(over, Handlers::new(), config.clone()).await;
            let far = endpoint_with(over, far, config).await;
            let peer = near.map(3, far.name(), Tag(1)).await.expect("it is there");
            let mut sent = 0;
            for len in LENGTHS {
                peer.request_with(NOTE, 0, &vec![1; len]).await.expect("it is there");
                sent += len as u64;
            }
            near.unmap_all().await;
            drop((peer, near));
            assert_eq!(handled.load(Ordering::Relaxed), sent, "{policy:?}");
        }
    });
}

#[test]
fn requests_without_replies_are_all_handled_in_their_order() {
    everywhere(|over| async move {
        let next = Arc::new(AtomicU64::new(0));
        let noted = next.clone();
        let far = Handlers::new().request(NOTE, move |_, number| {
            assert_eq!(noted.fetch_add(1, Ordering::Relaxed), number);
        });
        let far = far.request(ADD, |request, (a, b)| request.reply(SUM, a + b));
        let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
        for number in 0..10_000 {
            peer.request(NOTE, number).await.expect("it is there");
        }
        peer.call(ADD, (0, 0)).await.expect("it is answered");
        assert_eq!(next.load(Ordering::Relaxed), 10_000);
        assert_eq!(far.bundle().statistics().panics, 0, "each came in its turn");
    });
}

#[test]
fn a_caller_is_told_that_the_reply_was_longer_than_it_takes() {
    const LONG: RequestId<bool> = RequestId::new(8, "long");
    everywhere(|over| async move {
        let too_long = [7; 4097];
        let is_refused = |sent: &Result<(), SendError>| {
            matches!(sent, Err(SendError::TooLong { len: 4097, most: 4096, .. }))
        };
        let far = Handlers::new()
            .request(LONG, move |request, _| {
                let refused = request.reply_with(BACK, Words::NONE, too_long);
                assert!(is_refused(&refused), "{refused:?}");
            })
            .request_async(LATER, move |request, _| async move {
                let refused = request.reply_with(BACK, Words::NONE, too_long);
                assert!(is_refused(&refused), "{refused:?}");
            });
        let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
        assert_eq!(undeliverable(peer.call(LONG, true).await), Undeliverable::LongReply);
        assert_eq!(undeliverable(peer.call(LATER, 1).await), Undeliverable::LongReply);
        assert_eq!(far.bundle().statistics().panics, 0);
    });
}
