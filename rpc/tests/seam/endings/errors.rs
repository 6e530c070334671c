//! What the statuses of calls say that could not be made.

use std::error::Error;
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code, Method};
use doorbell_verbs::Config;

const ECHO: Method<u64, u64> = Method::new("echo");

/// Each of a status, its source, and the source of that had all that was behind it in its message,
/// so that a program that shows an error with its sources said the same four times.
#[tokio::test]
async fn a_status_of_a_server_that_is_not_there_says_each_thing_once() {
    let brief = Config { connect_timeout: Duration::from_millis(100), ..Config::default() };
    let channel = Channel::builder()
        .connect_timeout(Duration::from_secs(2))
        .endpoint(|endpoint| endpoint.nic(brief))
        .connect_lazily("udp:127.0.0.1:9#7")
        .await
        .expect("any port of this machine's will do");
    let status = Client::new(channel).unary(ECHO, 1).await.expect_err("nobody is there");
    assert_eq!(status.code(), Code::Unavailable);
    let shown = doorbell_kit::chain(&status);
    for once in ["no connection", "the port is closed"] {
        assert_eq!(shown.matches(once).count(), 1, "{shown}");
    }
    assert!(status.source().is_none(), "{shown}");
}
