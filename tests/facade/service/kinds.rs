//! Methods of all kinds, by a client whose service is the server's router itself.

use doorbell::rpc::{Code, Request};
use futures_util::stream;

use crate::service::{Ask, GreeterClient, Told, all, within_the_process};

#[tokio::test]
async fn a_method_of_one_argument_takes_it_and_answers() {
    let greeter = within_the_process();
    assert_eq!(greeter.hello("Ann".to_owned()).await.expect("an answer"), "Hello Ann");
}

#[tokio::test]
async fn the_status_that_a_method_fails_with_reaches_the_caller() {
    let status = within_the_process().hello(String::new()).await.expect_err("no name");
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "nobody has no name"));
}

#[tokio::test]
async fn a_method_without_arguments_is_called_without_any() {
    within_the_process().nothing().await.expect("an answer");
}

#[tokio::test]
async fn several_arguments_come_in_their_order() {
    let greeter = within_the_process();
    assert_eq!(greeter.add(2, 3).await.expect("a sum"), 5);
    let status = greeter.add(u64::MAX, 1).await.expect_err("no sum");
    assert_eq!(status.code(), Code::OutOfRange);
}

#[tokio::test]
async fn a_method_of_a_request_takes_a_message_or_a_request_with_metadata() {
    let greeter = within_the_process();
    let ask = Ask { question: "why".to_owned() };
    let told = greeter.full(ask.clone()).await.expect("an answer");
    assert_eq!(told.metadata().text("asked-by"), Some("nobody"));
    assert_eq!(told.into_inner(), Told { answer: 3 });

    let mut request = Request::new(ask);
    request.metadata_mut().insert("user", "ann");
    let told = greeter.full(request).await.expect("an answer");
    assert_eq!(told.metadata().text("asked-by"), Some("ann"));
}

#[tokio::test]
async fn a_method_that_answers_with_a_stream_gives_its_messages() {
    let greeter = within_the_process();
    assert_eq!(all(greeter.count(3).await.expect("a stream")).await, [0, 1, 2]);
    let counted = greeter.count_fully(2).await.expect("a stream").into_inner();
    assert_eq!(all(counted).await, [0, 1]);
}

#[tokio::test]
async fn a_method_of_a_stream_takes_any_stream_of_messages() {
    let greeter = within_the_process();
    assert_eq!(greeter.sum(stream::iter(1..=4)).await.expect("a sum"), 10);
    assert_eq!(greeter.sum(stream::empty()).await.expect("a sum"), 0);
}

#[tokio::test]
async fn a_method_of_streams_both_ways_gives_a_message_for_each() {
    let greeter = within_the_process();
    let doubled = greeter.doubled(stream::iter([1, 2])).await.expect("a stream");
    assert_eq!(all(doubled).await, [2, 4]);
}

#[tokio::test]
async fn a_method_of_a_request_with_a_stream_takes_a_stream_with_or_without_a_request() {
    let greeter = within_the_process();
    let words = || stream::iter(["a", "b"].map(str::to_owned));
    let louder = greeter.both(words()).await.expect("a stream");
    assert_eq!(louder.metadata().text("said-by"), Some("nobody"));
    assert_eq!(all(louder.into_inner()).await, ["A", "B"]);

    let mut request = Request::new(words());
    request.metadata_mut().insert("user", "ann");
    let louder = greeter.both(request).await.expect("a stream");
    assert_eq!(louder.metadata().text("said-by"), Some("ann"));
}

#[tokio::test]
async fn a_default_body_calls_the_other_methods_of_the_trait() {
    let greeter = within_the_process();
    assert_eq!(greeter.farewell("Ann".to_owned()).await.expect("an answer"), "Goodbye Ann");
}

#[test]
fn the_constants_of_a_client_have_paths_schemas_and_whether_calls_may_be_repeated() {
    let hello = GreeterClient::HELLO.id();
    assert_eq!((hello.path(), hello.schema_text()), ("Greeter/hello", "(String) -> String"));
    assert!(hello.is_idempotent() && !GreeterClient::ADD.id().is_idempotent());
    let schemas = [
        (GreeterClient::NOTHING.id(), "() -> ()"),
        (GreeterClient::ADD.id(), "(u64, u64) -> u64"),
        (GreeterClient::FULL.id(), "(Ask) -> Told"),
        (GreeterClient::COUNT.id(), "(u64) -> stream u64"),
        (GreeterClient::COUNT_FULLY.id(), "(u64) -> stream u64"),
        (GreeterClient::SUM.id(), "(stream u64) -> u64"),
        (GreeterClient::BOTH.id(), "(stream String) -> stream String"),
    ];
    for (method, schema) in schemas {
        assert_eq!(method.schema_text(), schema, "{method}");
    }
}

#[test]
fn clients_and_servers_may_be_shared_with_tasks() {
    fn may_be_sent<T: Send>(_: &T) {}
    let greeter = within_the_process();
    may_be_sent(&greeter);
    let connected = |greeter: GreeterClient| {
        may_be_sent(&greeter.hello(String::new()));
        may_be_sent(&greeter.sum(stream::empty()));
        may_be_sent(&greeter.both(stream::empty()));
    };
    may_be_sent(&connected);
}
