//! Messages of frames, whose memory their senders write: what a program has received is its own.

use bytes::Bytes;
use doorbell_messages::frames::{Emp, Endpoint, Match, Offload, Policy, ReceiveError, Rmpp};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ends::body;

/// Messages, each with its length, for how many turns its receive waits before it is dropped, if it
/// is, and whether its receive is posted first.
#[derive(Clone, Debug)]
pub struct Program {
    policy: usize,
    messages: Vec<(usize, Option<u32>, bool)>,
}

pub fn program() -> impl Strategy<Value = Program> {
    let len = prop_oneof![2 => 0..100_usize, 2 => 0..20_000_usize, 1 => 0..200_000_usize];
    let drops = proptest::option::weighted(0.2, 0..100_u32);
    let messages = vec((len, drops, any::<bool>()), 1..12);
    (0..4_usize, messages).prop_map(|(policy, messages)| Program { policy, messages })
}

async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Sends the messages of a program, each of which is received, by another receive if the first was
/// dropped.
pub fn plays(Program { policy, messages }: Program) {
    let policies: [Policy; 4] = [
        Emp::default().into(),
        Rmpp::default().early(6).into(),
        Rmpp::default().offload(Offload::Receive).into(),
        Rmpp::default().early(6).offload(Offload::Both).into(),
    ];
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(async {
        let open = || Endpoint::builder().policy(policies[policy]).open("shm");
        let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
        let peer = near.connect(far.name()).await.expect("there is a way");
        if policy > 1 {
            assert!(peer.ready().await, "frames are placed");
        }
        let mut held: Vec<(u64, Bytes)> = Vec::new();
        for (number, (len, drops, is_posted_first)) in (0_u64..).zip(messages) {
            let lent = body(number, len);
            let post = || far.receive_at_most(1 << 20, Match::exactly(number));
            let posted = is_posted_first.then(post);
            let mut sending = peer.send(number, lent.clone());
            let mut receiving = posted.unwrap_or_else(post);
            let received = match drops {
                None => Some((&mut receiving).await),
                Some(count) => tokio::select! {
                    biased;
                    received = &mut receiving => Some(received),
                    () = turns(count) => None,
                },
            };
            match received {
                Some(Ok(message)) => {
                    assert!(message.body == lent, "message {number}");
                    held.push((number, message.body));
                    (&mut sending).await.expect("it was received");
                }
                Some(Err(why)) => panic!("message {number}: {why}"),
                // A message that has come to a dropped receive is lost, and its frames may still be
                // written.
                None => {
                    let has_left = receiving.cancel();
                    drop(receiving);
                    if has_left {
                        let again = post().await;
                        assert!(
                            matches!(again, Ok(ref message) if message.body == lent),
                            "{again:?}"
                        );
                    }
                }
            }
            for (number, bytes) in &held {
                assert!(*bytes == body(*number, bytes.len()), "message {number} has changed");
            }
            assert!(lent == body(number, len), "what was sent as {number} has changed");
        }
        let nothing = far.receive_at_most(10, Match::any()).test();
        assert!(matches!(nothing, None | Some(Err(ReceiveError::Truncated { .. }))), "{nothing:?}");
    });
}
