//! A channel whose calls end sooner than a connection can be made.

use std::time::Duration;

use doorbell_kit::PATIENCE;
use doorbell_rpc::{Channel, Client, Code, Request, Server};
use doorbell_simulation::{Faults, passing};

use crate::fabric::{ADD, Handled, router};
use crate::virtual_time::ends;

// Each call began an attempt to connect, and its end was that of the attempt.
#[tokio::test]
async fn a_channel_connects_although_no_call_waits_for_as_long_as_that_takes() {
    let (ether, _, [far, near]) = ends(1, Faults::NONE);
    let server = Server::builder().add_service(router(&Handled::default())).on_bundle(&far);
    let server = passing(&ether, server).await.expect("there is room");
    let channel = Channel::builder().on_bundle(&near).connect_lazily(server.name());
    let channel = passing(&ether, channel).await.expect("there is room");
    let client = Client::new(channel.clone());
    for _ in 0..3 {
        // No time passes on the cable meanwhile.
        let mut request = Request::new((2, 3));
        request.set_timeout(Duration::from_millis(1));
        let late = client.unary(ADD, request).await.expect_err("nothing moves on the cable");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    }
    let connects = passing(&ether, async {
        while !channel.is_connected() {
            tokio::task::yield_now().await;
        }
    });
    tokio::time::timeout(PATIENCE, connects).await.expect("it connects by itself");
    let sum = passing(&ether, client.unary(ADD, (2, 3))).await.expect("it adds");
    assert_eq!(sum.into_inner(), 5);
}
