//! A server in a process of its own, which records each call that it runs.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use doorbell_kit::child;
use doorbell_rpc::{Method, Router, Server, Status};

/// Runs once: returns the number that it is given.
pub const ONCE: Method<u64, u64> = Method::new("chaos/once");
/// May run several times.
pub const AGAIN: Method<u64, u64> = Method::new("chaos/again").idempotent();

/// The number by which clients name the servers at their addresses.
pub const SERVICE: u64 = 7;

/// How long a server that is shut down waits for its calls.
const LIMIT: Duration = Duration::from_secs(10);

/// How long some handlers wait.
const WORK: Duration = Duration::from_millis(3);

/// Records that a call runs, and returns its number. The record stays if the process is killed.
async fn run(record: &File, call: u64) -> Result<u64, Status> {
    let mut record = record;
    record.write_all(&call.to_le_bytes()).expect("the record can be written");
    if call.is_multiple_of(3) {
        tokio::time::sleep(WORK).await;
    }
    Ok(call)
}

/// Serves as the part says, which is a device and the path of the record, until the parent has the
/// server shut down, or kills it.
pub fn serve(part: &str) {
    let (device, path) = part.split_once(' ').expect("a device and a path");
    let record = File::options().append(true).create(true).open(path);
    let record = Arc::new(record.expect("the record can be opened"));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads can be started");
    let [once, again] = [record.clone(), record];
    let router = Router::new()
        .unary(ONCE, move |request| {
            let record = once.clone();
            async move { run(&record, request.into_inner()).await }
        })
        .unary(AGAIN, move |request| {
            let record = again.clone();
            async move { run(&record, request.into_inner()).await }
        });
    let server = Server::builder().add_service(router).service(SERVICE);
    let server = runtime.block_on(server.open(device)).expect("the device opens");
    child::tell(server.name());
    while let Some(order) = child::listen() {
        match order.split_once(' ') {
            Some(("block", time)) => {
                let time = Duration::from_millis(time.parse().expect("a number"));
                runtime.spawn(async move { std::thread::sleep(time) });
            }
            _ => break,
        }
    }
    let shut_down = runtime.block_on(server.close_within(LIMIT));
    child::tell(shut_down.map_or_else(|why| why.to_string(), |()| "shut down".to_owned()));
}
