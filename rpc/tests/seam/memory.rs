//! How much memory a call allocates whose handler runs as a task.

use doorbell_kit::Allocated;
use doorbell_rpc::{Channel, Client, Method, Router, Server};

const NONE: Method<(), ()> = Method::new("none");

#[tokio::test]
async fn a_call_whose_handler_runs_as_a_task_allocates_no_room_for_streams_and_long_bodies() {
    /// The most bytes that a call may allocate at both ends together. A stream or a long body takes
    /// more.
    const MOST: usize = 8192;
    /// How many calls are made, so that memory that is allocated once does not count.
    const CALLS: usize = 1000;
    let router = Router::new().unary(NONE, |_| async { Ok(()) });
    let server = Server::builder().add_service(router).open("shm").await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel);
    let before = Allocated::bytes_of_thread();
    for _ in 0..CALLS {
        client.unary(NONE, ()).await.expect("the call is answered");
    }
    let each = (Allocated::bytes_of_thread() - before) / CALLS;
    assert!(each <= MOST, "a call allocates {each} bytes, and {MOST} are allowed");
}
