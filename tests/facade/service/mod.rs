//! Services that are traits: what their servers and clients do, within a process and over devices.

mod hygiene;
mod kinds;
mod options;
mod over_devices;

use std::future::Future;

use doorbell::rpc::{self, Channel, Request, Response, Router, Server, Status, Streaming};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Ask {
    question: String,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Told {
    answer: u64,
}

/// A service with a method of each kind.
#[rpc::service]
trait Greeter {
    /// Greets the person who is named.
    #[rpc(idempotent)]
    async fn hello(&self, name: String) -> Result<String, Status>;
    async fn nothing(&self) -> Result<(), Status>;
    #[rpc(inline)]
    async fn add(&self, a: u64, b: u64) -> Result<u64, Status>;
    async fn full(&self, request: Request<Ask>) -> Result<Response<Told>, Status>;
    async fn count(&self, to: u64) -> Result<Streaming<u64>, Status>;
    async fn count_fully(&self, to: Request<u64>) -> Result<Response<Streaming<u64>>, Status>;
    async fn sum(&self, numbers: Streaming<u64>) -> Result<u64, Status>;
    async fn both(
        &self,
        words: Request<Streaming<String>>,
    ) -> Result<Response<Streaming<String>>, Status>;
    async fn doubled(&self, numbers: Streaming<u64>) -> Result<Streaming<u64>, Status>;
    /// A method that implementors need not have.
    async fn farewell(&self, name: String) -> Result<String, Status> {
        let hello = self.hello(name).await?;
        Ok(hello.replace("Hello", "Goodbye"))
    }
}

#[derive(Debug)]
struct English;

impl Greeter for English {
    async fn hello(&self, name: String) -> Result<String, Status> {
        if name.is_empty() {
            return Err(Status::invalid_argument("nobody has no name"));
        }
        Ok(format!("Hello {name}"))
    }

    async fn nothing(&self) -> Result<(), Status> {
        Ok(())
    }

    async fn add(&self, a: u64, b: u64) -> Result<u64, Status> {
        a.checked_add(b).ok_or_else(|| Status::out_of_range("the sum is too large"))
    }

    async fn full(&self, request: Request<Ask>) -> Result<Response<Told>, Status> {
        let user = request.metadata().text("user").unwrap_or("nobody").to_owned();
        let answer = request.get_ref().question.len() as u64;
        let mut response = Response::new(Told { answer });
        response.metadata_mut().insert("asked-by", user);
        Ok(response)
    }

    async fn count(&self, to: u64) -> Result<Streaming<u64>, Status> {
        Ok(Streaming::new(stream::iter(0..to).map(Ok)))
    }

    async fn count_fully(&self, to: Request<u64>) -> Result<Response<Streaming<u64>>, Status> {
        Ok(self.count(to.into_inner()).await?.into())
    }

    async fn sum(&self, mut numbers: Streaming<u64>) -> Result<u64, Status> {
        let mut sum = 0;
        while let Some(number) = numbers.message().await? {
            sum += number;
        }
        Ok(sum)
    }

    async fn both(
        &self,
        words: Request<Streaming<String>>,
    ) -> Result<Response<Streaming<String>>, Status> {
        let user = words.metadata().text("user").unwrap_or("nobody").to_owned();
        let louder = words.into_inner().map(|word| word.map(|word| word.to_uppercase()));
        let mut response = Response::new(Streaming::new(louder));
        response.metadata_mut().insert("said-by", user);
        Ok(response)
    }

    async fn doubled(&self, numbers: Streaming<u64>) -> Result<Streaming<u64>, Status> {
        Ok(Streaming::new(numbers.map(|number| Ok(2 * number?))))
    }
}

/// A client of the service within this process, without a server.
fn within_the_process() -> GreeterClient<Router> {
    GreeterClient::new(GreeterServer::new(English).into())
}

/// Runs a test with a client and the server that it is connected to, over shared memory and over
/// UDP.
async fn over_each_device<F: Future<Output = ()>>(test: impl Fn(GreeterClient, Server) -> F) {
    for device in ["shm", "udp:127.0.0.1:0"] {
        let server = Server::builder().add_service(GreeterServer::new(English)).open(device).await;
        let server = server.unwrap_or_else(|why| panic!("{device}: {why}"));
        let channel = Channel::connect(server.name()).await;
        let channel = channel.unwrap_or_else(|why| panic!("{device}: {why}"));
        test(GreeterClient::new(channel), server).await;
    }
}

/// Returns the messages of a stream, which must end without an error.
async fn all<T>(messages: impl Stream<Item = Result<T, Status>>) -> Vec<T> {
    messages.map(|message| message.expect("the stream has no error")).collect().await
}
