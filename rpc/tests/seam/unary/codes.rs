//! The codes by which calls fail.

use bytes::Bytes;
use doorbell_rpc::{Code, Method, Raw, Router, Server, Status};

use crate::unary::{Device, HOLD, Stage, connected, echoes, in_time, over_each_device};

over_each_device! {
    a_method_that_the_server_does_not_have_is_unimplemented,
    a_body_that_is_no_message_is_an_invalid_argument,
    a_call_of_another_schema_is_refused_before_its_body_is_read,
    a_call_without_a_schema_fits_any,
    a_panic_is_an_internal_error_of_its_caller_alone,
    a_status_of_a_handler_reaches_its_caller_with_code_and_message,
}

async fn a_method_that_the_server_does_not_have_is_unimplemented(device: Device) {
    const ABSENT: Method<String, String> = Method::new("stage/absent");
    let server = Stage::default().open(device).await;
    let client = connected(&server).await;
    let status = client.unary(ABSENT, String::new()).await.expect_err("there is no method");
    assert_eq!(status.code(), Code::Unimplemented);
    for text in ["stage/absent", "stage/echo"] {
        assert!(status.message().contains(text), "{status}");
    }
    echoes(&client).await;
}

async fn a_body_that_is_no_message_is_an_invalid_argument(device: Device) {
    const RAW: Method<Bytes, Bytes, Raw> = Method::new("stage/echo");
    let server = Stage::default().open(device).await;
    let client = connected(&server).await;
    for body in [&b""[..], b"\x05abc", b"\x01\xff", b"\x01ab"] {
        let status = client.unary(RAW, Bytes::from_static(body)).await.expect_err("no text");
        assert_eq!(status.code(), Code::InvalidArgument, "{body:?}: {status}");
    }
    echoes(&client).await;
}

async fn a_call_of_another_schema_is_refused_before_its_body_is_read(device: Device) {
    const OTHER: Method<Bytes, Bytes, Raw> = Method::new("stage/echo").schema("(u64) -> u64");
    let server = Stage::default().open(device).await;
    let client = connected(&server).await;
    let status = client.unary(OTHER, Bytes::from_static(b"\xff")).await.expect_err("no text");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("`(String) -> String`"), "{status}");
    echoes(&client).await;
}

async fn a_call_without_a_schema_fits_any(device: Device) {
    const NONE: Method<String, String> = Method::new("stage/echo");
    let server = Stage::default().open(device).await;
    let client = connected(&server).await;
    let echo = client.unary(NONE, "text".to_owned()).await.expect("an answer");
    assert_eq!(echo.into_inner(), "text");
}

async fn a_panic_is_an_internal_error_of_its_caller_alone(device: Device) {
    const AT_ONCE: Method<(), ()> = Method::new("panics/at once");
    const INLINE: Method<(), ()> = Method::new("panics/inline");
    const LATER: Method<(), ()> = Method::new("panics/later");
    let panics = Router::new()
        .unary(AT_ONCE, |_| -> std::future::Ready<Result<(), Status>> { panic!("on purpose") })
        .unary(INLINE, |_| -> std::future::Ready<Result<(), Status>> { panic!("on purpose") })
        .unary(LATER, async |_| -> Result<(), Status> {
            tokio::task::yield_now().await;
            panic!("on purpose")
        })
        .inline(INLINE);
    let stage = Stage::default();
    let server = Server::builder().add_service(stage.router()).add_service(panics);
    let server = server.open(device.any()).await.expect("a server");
    let client = connected(&server).await;

    let other = client.clone();
    let other = tokio::spawn(async move { other.unary(HOLD, 7).await });
    stage.has_begun().await;
    for method in [AT_ONCE, INLINE, LATER] {
        let status = in_time(client.unary(method, ())).await.expect_err("the handler panics");
        assert_eq!(status.code(), Code::Internal, "{status}");
        assert!(status.message().contains(method.id().path()), "{status}");
        assert!(!status.message().contains("on purpose"), "the text is the server's: {status}");
    }
    stage.go(1);
    let held = in_time(other).await.expect("no panic here").expect("an answer");
    assert_eq!(held.into_inner(), 7);
    echoes(&client).await;
}

async fn a_status_of_a_handler_reaches_its_caller_with_code_and_message(device: Device) {
    const FAIL: Method<u8, ()> = Method::new("fails/by number");
    let fails = Router::new().unary(FAIL, async |request| -> Result<(), Status> {
        let number = request.into_inner();
        Err(Status::new(Code::from_number(number), format!("failed with {number}")))
    });
    let server = Server::builder().add_service(fails).open(device.any()).await.expect("a server");
    let client = connected(&server).await;
    for number in 1..=16 {
        let status = client.unary(FAIL, number).await.expect_err("the handler fails");
        assert_eq!(status.code(), Code::from_number(number));
        assert_eq!(status.message(), format!("failed with {number}"));
    }
}
