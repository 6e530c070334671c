//! Servers that end, and that come again under the same name.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use doorbell_rpc::{Code, Request};

use crate::devices::common::{ADD, Ends, HOLD, Stage, answers};

pub async fn a_server_that_shuts_down_finishes_its_calls_and_refuses_others(ends: Ends) {
    let stage = Stage::default();
    let server = ends.open(stage.server()).await;
    let client = ends.client(&server).await;
    let accepted = client.clone();
    let accepted = tokio::spawn(async move { accepted.unary(HOLD, 1).await });
    stage.has_begun().await;

    let mut shutdown = pin!(server.close());
    let waits = poll_fn(|context| Poll::Ready(Pin::new(&mut shutdown).poll(context).is_pending()));
    assert!(waits.await);
    // A call that waits for a server would wait for the next one.
    let mut request = Request::new((1, 2));
    request.set_wait_for_ready(false);
    let status = client.unary(ADD, request).await.expect_err("it shuts down");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    stage.go();
    shutdown.await.expect("the client takes its answer");
    let held = accepted.await.expect("no panic").expect("it was accepted");
    assert_eq!(held.into_inner(), 1);
}

pub async fn a_channel_connects_again_to_a_server_that_has_started_anew(ends: Ends) {
    let stages = [Stage::default(), Stage::default()];
    let server = ends.open(stages[0].server()).await;
    let client = ends.client(&server).await;
    answers(&client).await;
    let call = client.clone();
    let call = tokio::spawn(async move { call.unary(HOLD, 1).await });
    stages[0].has_begun().await;
    drop(server);
    let server = ends.open(stages[1].server()).await;
    answers(&client).await;
    // It may have run at the first server.
    let status = call.await.expect("no panic").expect_err("its server has gone");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    stages[0].has_ended().await;
    assert_eq!(stages[1].begun(), 0);
    server.close().await.expect("clients take their answers");
}

// Tasks that were being stopped kept the NIC of a server that was dropped, and its address was
// taken until the runtime had dropped them.
pub async fn the_name_of_a_server_can_be_opened_again_as_soon_as_the_server_is_dropped(ends: Ends) {
    for _ in 0..4 {
        let stage = Stage::default();
        let server = ends.open(stage.server()).await;
        let client = ends.client(&server).await;
        answers(&client).await;
        // A handler is running, and one waits for the credit of its call to be given back.
        let call = tokio::spawn(async move { client.unary(HOLD, 1).await });
        stage.has_begun().await;
        drop(server);
        let again = ends.open(Stage::default().server()).await;
        let client = ends.client(&again).await;
        answers(&client).await;
        call.abort();
        stage.has_ended().await;
    }
}

pub async fn the_name_of_a_server_can_be_opened_again_as_soon_as_the_server_has_shut_down(
    ends: Ends,
) {
    for _ in 0..4 {
        let server = ends.open(Stage::default().server()).await;
        let client = ends.client(&server).await;
        answers(&client).await;
        server.close().await.expect("clients take their answers");
        drop(server);
    }
}
