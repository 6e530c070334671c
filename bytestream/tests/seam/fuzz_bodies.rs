//! The body of the fuzz target `byte_stream`, run briefly on inputs that are the same each time.

use doorbell_kit::{effort, try_body};

#[path = "../../../fuzz/src/byte_stream/mod.rs"]
mod body;

#[test]
fn nothing_that_a_peer_sends_breaks_a_byte_stream_or_its_listener() {
    try_body("byte_stream", body::byte_stream, effort(300, 5000));
}
