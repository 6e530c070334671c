//! Calls with one request and one response.

use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{Code, Request};
use futures_util::future::join_all;

use crate::devices::common::{ADD, ECHO, Ends, FAIL, HOLD, Stage, answers};

pub async fn unary_calls_are_answered_and_statuses_reach_the_caller(ends: Ends) {
    let server = ends.open(Stage::default().server()).await;
    let client = ends.client(&server).await;
    let added = join_all((0..300).map(|number| client.unary(ADD, (number, 5)))).await;
    for (number, sum) in (0..).zip(added) {
        assert_eq!(sum.expect("an answer").into_inner(), number + 5);
    }
    let echoed = join_all((0..300_u32).map(|number| {
        let bytes = Bytes::copy_from_slice(&number.to_be_bytes());
        client.unary(ECHO, bytes)
    }));
    for (number, echo) in (0_u32..).zip(echoed.await) {
        assert_eq!(echo.expect("an answer").into_inner()[..], number.to_be_bytes());
    }
    let status = client.unary(FAIL, "the disk".to_owned()).await.expect_err("it fails");
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "the disk"));
}

pub async fn a_body_of_some_mebibytes_comes_back_as_it_was(ends: Ends) {
    let server = ends.open(Stage::default().server()).await;
    let client = ends.client(&server).await;
    let body: Bytes = (0..(3 << 20) + 5).map(|at: usize| (at * 7 + at / 251) as u8).collect();
    for _ in 0..2 {
        let echoed = client.unary(ECHO, body.clone()).await.expect("it is echoed").into_inner();
        assert!(echoed == body);
    }
}

pub async fn a_call_that_is_dropped_drops_its_handler(ends: Ends) {
    let stage = Stage::default();
    let server = ends.open(stage.server()).await;
    let client = ends.client(&server).await;
    tokio::select! {
        biased;
        () = stage.has_begun() => {}
        answer = client.unary(HOLD, 1) => panic!("nobody let it go: {answer:?}"),
    }
    stage.has_ended().await;
    answers(&client).await;
}

pub async fn a_deadline_ends_the_call_and_its_handler(ends: Ends) {
    let stage = Stage::default();
    let server = ends.open(stage.server()).await;
    let client = ends.client(&server).await;
    let mut request = Request::new(1);
    request.set_timeout(Duration::from_millis(200));
    let status = client.unary(HOLD, request).await.expect_err("its time is over");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    stage.has_begun().await;
    stage.has_ended().await;
    answers(&client).await;
}
