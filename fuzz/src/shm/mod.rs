//! A link of shared memory, and the messages of Unix sockets, as a peer may write them.
//!
//! The body of the target `shm` is a plain function over bytes. libFuzzer feeds it, and so does
//! `cargo test` (`transports/tests/seam/fuzz_bodies.rs`).

mod link;

use doorbell_transports::floor::{sharing_message_again, shm_message_again};

/// Gives an input to the parsers of messages, and to an end of a link as a script.
pub fn shm(data: &[u8]) {
    messages(data);
    link::link(data);
}

/// Asserts that a message is written as it was read; one of processes that share, so that it means
/// the same.
fn messages(data: &[u8]) {
    if let Some(again) = shm_message_again(data) {
        assert_eq!(again, data);
    }
    if let Some(again) = sharing_message_again(data) {
        assert!(again.len() <= data.len(), "it grew");
        assert_eq!(sharing_message_again(&again).as_ref(), Some(&again));
    }
}
