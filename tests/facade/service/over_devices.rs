//! Methods of all kinds, over shared memory and UDP.

use doorbell::rpc::{self, Channel, Client, Code, Method, Request, Status};
use futures_util::stream;

use crate::service::{Ask, GreeterClient, Told, all, over_each_device};

#[tokio::test(flavor = "multi_thread")]
async fn methods_of_one_message_answer() {
    over_each_device(async |greeter, _server| {
        assert_eq!(greeter.hello("Ann".to_owned()).await.expect("an answer"), "Hello Ann");
        assert_eq!(greeter.add(2, 3).await.expect("a sum"), 5);
        greeter.nothing().await.expect("an answer");
        let status = greeter.hello(String::new()).await.expect_err("no name");
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "nobody has no name");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_goes_both_ways() {
    over_each_device(async |greeter, _server| {
        let mut request = Request::new(Ask { question: "why".to_owned() });
        request.metadata_mut().insert("user", "ann");
        let told = greeter.full(request).await.expect("an answer");
        assert_eq!(told.metadata().text("asked-by"), Some("ann"));
        assert_eq!(told.into_inner(), Told { answer: 3 });
    })
    .await;
}

/// The service as an older program has it, with another type.
mod before {
    use super::{Status, rpc};

    #[rpc::service]
    pub trait Greeter {
        async fn hello(&self, name: Vec<u8>) -> Result<String, Status>;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_other_types_is_refused_before_its_body_is_read() {
    over_each_device(async |_greeter, server| {
        let channel = Channel::connect(server.name()).await.expect("a connection");
        let older = before::GreeterClient::new(channel);
        let status = older.hello(vec![0xff]).await.expect_err("other types");
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("`(String) -> String`"), "{status}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_called_by_hand_by_their_constants_and_by_their_paths() {
    over_each_device(async |_greeter, server| {
        let channel = Channel::connect(server.name()).await.expect("a connection");
        let client = Client::new(channel);
        let sum = client.unary(GreeterClient::ADD, (2, 3)).await.expect("a sum");
        assert_eq!(sum.into_inner(), 5);
        let by_path: Method<String, String> = Method::new("Greeter/hello");
        let hello = client.unary(by_path, "Ann".to_owned()).await.expect("an answer");
        assert_eq!(hello.into_inner(), "Hello Ann");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_answers_with_a_stream_is_called_over_a_channel() {
    over_each_device(async |greeter, _server| {
        let counted = all(greeter.count(1000).await.expect("a stream")).await;
        assert!(counted.into_iter().eq(0..1000));
        let counted = all(greeter.count(0).await.expect("a stream")).await;
        assert!(counted.is_empty(), "{counted:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_takes_a_stream_is_called_over_a_channel() {
    over_each_device(async |greeter, _server| {
        assert_eq!(greeter.sum(stream::iter(0..=1000)).await.expect("a sum"), 500_500);
        assert_eq!(greeter.sum(stream::empty()).await.expect("a sum"), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_stream_with_metadata_and_answer_before_the_request_has_ended() {
    over_each_device(async |greeter, _server| {
        let (words, said) = tokio::sync::mpsc::unbounded_channel::<String>();
        let said = stream::unfold(said, |mut said| async move {
            let word = said.recv().await?;
            Some((word, said))
        });
        let mut request = Request::new(said);
        request.metadata_mut().insert("user", "ann");
        let louder = greeter.both(request).await.expect("a stream");
        assert_eq!(louder.metadata().text("said-by"), Some("ann"));
        let mut louder = louder.into_inner();
        for (word, answer) in [("a", "A"), ("b", "B")] {
            words.send(word.to_owned()).expect("the stream is taken");
            assert_eq!(louder.message().await.expect("a word").as_deref(), Some(answer));
        }
        drop(words);
        assert_eq!(louder.message().await.expect("the end"), None);
    })
    .await;
}
