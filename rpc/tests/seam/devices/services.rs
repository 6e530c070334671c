//! Services that are traits.

use doorbell_rpc::{self as rpc, Server, Status, Streaming};
use futures_util::{StreamExt, stream};

use crate::devices::common::Ends;

#[rpc::service(crate = "doorbell_rpc")]
trait Greeter {
    async fn hello(&self, name: String) -> Result<String, Status>;
    #[rpc(inline)]
    async fn add(&self, one: u64, other: u64) -> Result<u64, Status>;
    async fn doubled(&self, numbers: Streaming<u64>) -> Result<Streaming<u64>, Status>;
}

struct English;

impl Greeter for English {
    async fn hello(&self, name: String) -> Result<String, Status> {
        Ok(format!("Hello {name}"))
    }

    async fn add(&self, one: u64, other: u64) -> Result<u64, Status> {
        Ok(one + other)
    }

    async fn doubled(&self, numbers: Streaming<u64>) -> Result<Streaming<u64>, Status> {
        Ok(Streaming::new(numbers.map(|number| Ok(2 * number?))))
    }
}

pub async fn a_service_that_is_a_trait_answers(ends: Ends) {
    let server = Server::builder().add_service(GreeterServer::new(English));
    let server = ends.open(server).await;
    let channel = ends.channel().connect(server.name()).await.expect("the server is there");
    let greeter = GreeterClient::new(channel);
    assert_eq!(greeter.hello("Ann".to_owned()).await.expect("an answer"), "Hello Ann");
    assert_eq!(greeter.add(2, 3).await.expect("a sum"), 5);
    let doubled = greeter.doubled(stream::iter([1, 2])).await.expect("a stream");
    let doubled: Vec<u64> = doubled.map(|number| number.expect("a number")).collect().await;
    assert_eq!(doubled, [2, 4]);
}
