//! The bodies of the fuzz targets for messages, run briefly on inputs that are the same each time.

use doorbell_kit::{effort, try_body};

#[path = "../../../fuzz/src/messages/mod.rs"]
mod bodies;

#[test]
fn nothing_that_a_peer_says_breaks_an_endpoint_of_tagged_messages() {
    try_body("tagged", bodies::tagged, effort(200, 5000));
}

#[test]
fn nothing_that_a_peer_says_breaks_an_endpoint_of_streams() {
    try_body("streams", bodies::streams, effort(200, 5000));
}

#[test]
fn nothing_that_a_peer_sends_breaks_an_endpoint_of_frames() {
    try_body("emp_rmpp", bodies::emp_rmpp, effort(200, 5000));
}
