//! What channels and servers leave behind when they are dropped: nothing.

use std::time::Duration;

use doorbell::rpc::{Channel, Client, Method, Router, Server};
use doorbell_kit::Allocated;
use tokio::time::timeout;

#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

const ADD: Method<(u64, u64), u64> = Method::new("add");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// How many channels or servers come and go, and how many bytes may be left of them all: a table
/// may have grown, and what is left of each would be much more.
const MANY: u64 = 200;
const LEFT: isize = 64 * 1024;

async fn server() -> Server {
    let router = Router::new().unary(ADD, |request| async move {
        let (a, b): (u64, u64) = request.into_inner();
        Ok(a + b)
    });
    let builder = Server::builder().add_service(router).sessions(1 << 16, Duration::ZERO);
    builder.open("udp:127.0.0.1:0").await.expect("the device opens")
}

async fn calls(server: &Server, number: u64) {
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let sum = Client::new(channel).unary(ADD, (number, 5)).await.expect("it adds");
    assert_eq!(sum.into_inner(), number + 5);
}

/// What the process has beside memory that it allocates: mappings, and descriptors.
fn objects() -> [usize; 2] {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells").lines().count();
    [maps, std::fs::read_dir("/proc/self/fd").expect("Linux tells").count()]
}

/// Waits until no more is allocated than there was, and as much as may be left.
async fn is_left(before: isize) {
    let ends = async {
        while ALLOCATED.bytes() - before > LEFT {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let ended = timeout(LONG, ends).await;
    ended.unwrap_or_else(|_| panic!("{} bytes are left", ALLOCATED.bytes() - before));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_and_servers_that_are_dropped_leave_no_memory_behind() {
    let lasts = server().await;
    for number in 0..20 {
        calls(&lasts, number).await;
        calls(&server().await, number).await;
    }
    let (before, objects_before) = (ALLOCATED.bytes(), objects());
    for number in 0..MANY {
        calls(&lasts, number).await;
    }
    eprintln!("channels: {} bytes, {objects_before:?} {:?}", ALLOCATED.bytes() - before, objects());
    is_left(before).await;
    for number in 0..MANY {
        calls(&server().await, number).await;
    }
    eprintln!("servers: {} bytes, {:?}", ALLOCATED.bytes() - before, objects());
    is_left(before).await;
}
