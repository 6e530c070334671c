//! The options of services and methods.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use doorbell::rpc::{self, Code, Codec, CodecError, Router, Server, Status};

/// Text as lines that end with a newline.
pub enum Lines {}

impl Codec<String> for Lines {
    fn encode(line: &String, into: &mut BytesMut) -> Result<(), CodecError> {
        into.extend_from_slice(format!("{line}\n").as_bytes());
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<String, CodecError> {
        let text = std::str::from_utf8(&bytes)?;
        Ok(text.strip_suffix('\n').ok_or("the line has no end")?.to_owned())
    }
}

#[rpc::service(name = "text.Echo", codec = self::Lines)]
trait Echo {
    #[rpc(name = "Say", idempotent, inline)]
    async fn say(&self, line: String) -> Result<String, Status>;
    #[rpc(name = "new")]
    async fn create(&self, line: String) -> Result<String, Status>;
}

struct Cave;

impl Echo for Cave {
    async fn say(&self, line: String) -> Result<String, Status> {
        Ok(format!("{line}, {line}"))
    }

    async fn create(&self, line: String) -> Result<String, Status> {
        Err(Status::already_exists(line))
    }
}

#[test]
fn the_names_of_services_and_methods_on_the_wire_are_those_of_their_options() {
    let router = Router::from(EchoServer::new(Cave));
    let mut paths: Vec<_> = router.methods().map(|method| method.path()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["text.Echo/Say", "text.Echo/new"]);
    assert!(EchoClient::SAY.id().is_idempotent());
}

#[tokio::test]
async fn messages_go_by_the_codec_of_the_service() {
    let cave = Arc::new(Cave);
    let router: Router = EchoServer::from_arc(cave.clone()).into();
    let raw = rpc::Method::<Bytes, Bytes, rpc::Raw>::new("text.Echo/Say");
    let said = rpc::Client::new(router).unary(raw, Bytes::from_static(b"hey\n")).await;
    assert_eq!(said.expect("an answer").into_inner(), "hey, hey\n");
    let echo = EchoClient::new(Router::from(EchoServer::from(cave)));
    assert_eq!(echo.say("hey".to_owned()).await.expect("an answer"), "hey, hey");
    let status = echo.create("hey".to_owned()).await.expect_err("a failure");
    assert_eq!((status.code(), status.message()), (Code::AlreadyExists, "hey"));
}

// A caller with another codec had its bytes misread.
#[tokio::test]
async fn a_caller_with_another_codec_than_the_service_is_refused_before_its_message_is_decoded() {
    assert_eq!(EchoClient::SAY.id().schema_text(), "(String) -> String by Lines");
    let router = Router::from(EchoServer::new(Cave));
    let other = rpc::Method::<String, String>::new("text.Echo/Say").schema("(String) -> String");
    let refused = rpc::Client::new(router).unary(other, "hey\n".to_owned()).await;
    assert_eq!(refused.expect_err("it is refused").code(), Code::FailedPrecondition);
}

#[test]
#[should_panic(expected = "two handlers have the method `text.Echo/")]
fn a_server_has_a_service_once() {
    let twice = || EchoServer::new(Cave);
    let _ = Server::builder().add_service(twice()).add_service(twice());
}
