//! Handlers of streams that receive into slices, and give up in the midst of that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_messages::streams::{Endpoint, Incoming, StreamId};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ends::body;

const STREAM: StreamId = StreamId::new("slices");

/// A receive of a handler: the length of its slice, and for how many turns it waits. A receive that
/// has not ended by then is dropped.
pub type Receives = Vec<(usize, u32)>;

/// Messages, each with the lengths of the pieces in which it is sent, and what its handler does.
#[derive(Clone, Debug)]
pub struct Program {
    messages: Vec<(Vec<usize>, Receives)>,
    paced: bool,
}

pub fn program() -> impl Strategy<Value = Program> {
    let pieces = vec(prop_oneof![3 => 1..200_usize, 1 => 1..40_000_usize], 1..8);
    let receives = vec((prop_oneof![3 => 0..300_usize, 1 => 0..50_000_usize], 0..40_u32), 1..8);
    (vec((pieces, receives), 1..6), any::<bool>())
        .prop_map(|(messages, paced)| Program { messages, paced })
}

async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Receives into slices, each of which is filled with another byte before, and checks them.
async fn handles(mut message: Incoming, receives: Receives) {
    let mut number = [0; 8];
    message.receive_into(&mut number).await.expect("each message begins with its number");
    let (number, mut at) = (u64::from_be_bytes(number), 0);
    // Where the place of the next byte is known, what comes must be right.
    let (mut is_known, mut slices) = (true, Vec::<[Vec<u8>; 2]>::new());
    for (len, count) in receives {
        let mut slice = vec![0xa5; len];
        let filled = tokio::select! {
            biased;
            filled = message.receive_into(&mut slice) => Some(filled),
            () = turns(count) => None,
        };
        match filled {
            Some(Ok(())) if is_known => {
                assert!(slice == body(number, at + len)[at..], "bytes {at}.. of {number}");
                at += len;
            }
            Some(Ok(())) => {}
            Some(Err(_)) => break,
            // Part of the slice may have been filled, and what that was is lost.
            None => is_known = len == 0,
        }
        slices.push([slice.clone(), slice]);
        turns(count).await;
        assert!(slices.iter().all(|[slice, then]| slice == then), "a slice has changed");
    }
    while let Ok(Some(_)) = message.receive_some().await {}
    assert!(slices.iter().all(|[slice, then]| slice == then), "a slice has changed");
}

/// Plays a program, and has all messages handled.
pub fn plays(Program { messages, paced }: Program) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(async {
        let todo =
            Arc::new(Mutex::new(messages.iter().map(|(_, what)| what.clone()).collect::<Vec<_>>()));
        let handled = Arc::new(AtomicUsize::new(0));
        let (does, counts) = (todo.clone(), handled.clone());
        let server = Endpoint::builder().window(8192).handler(STREAM, move |message| {
            let receives = does.lock().expect("nobody panics").pop().expect("one for each");
            let counts = counts.clone();
            async move {
                handles(message, receives).await;
                counts.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        let server = if paced { server.paced() } else { server };
        let server = server.open("shm").await.expect("it opens");
        let client = Endpoint::open("shm").await.expect("it opens");
        let peer = client.connect(server.name()).await.expect("the server is there");
        let count = messages.len();
        let sends = async {
            for (number, (pieces, _)) in (0_u64..).zip(messages) {
                let whole = body(number, pieces.iter().sum());
                let mut message = peer.begin(STREAM).await.expect("the server is there");
                message.send(number.to_be_bytes()).await.expect("it is taken");
                let mut at = 0;
                for len in pieces {
                    let piece = whole.slice(at..at + len);
                    message.send_bytes(piece).await.expect("it is taken");
                    at += len;
                }
                message.end_handled().await.expect("it is handled");
            }
        };
        let extracts = async {
            loop {
                match paced {
                    true => _ = server.extract(1000).await,
                    false => tokio::task::yield_now().await,
                }
            }
        };
        tokio::select! {
            () = sends => {}
            () = extracts => unreachable!("it goes on"),
            () = tokio::time::sleep(2 * doorbell_kit::PATIENCE) => panic!("it hangs"),
        }
        assert_eq!(handled.load(Ordering::Relaxed), count);
    });
}
