//! The body of the fuzz target `rpc`, run briefly on inputs that are the same each time.

use doorbell_kit::{effort, try_body};

#[path = "../../../fuzz/src/rpc/mod.rs"]
mod body;

#[test]
fn nothing_that_a_peer_sends_breaks_a_server_or_a_client() {
    try_body("rpc", body::rpc, effort(300, 5000));
}
