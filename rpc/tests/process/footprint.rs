//! What channels and servers leave behind when they are dropped: nothing.

use std::time::Duration;

use doorbell_kit::child;
use doorbell_rpc::{Channel, Client, Method, Router, Server};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::ALLOCATED;

const ADD: Method<(u64, u64), u64> = Method::new("add");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// How many channels or servers come and go, and how many bytes and descriptors may be left of them
/// all: a table may have grown, the process may have opened a descriptor that it keeps, and what is
/// left of each would be much more.
const MANY: u64 = 200;
const LEFT: isize = 64 * 1024;
const LEFT_OPEN: usize = 4;

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

/// How many descriptors the process has.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux tells").count()
}

/// Waits until no more is allocated and no more descriptors are open than there were, with as much as
/// may be left. Closing a device takes a while.
async fn is_left((bytes, open): (isize, usize)) {
    let ends = async {
        while ALLOCATED.bytes() - bytes > LEFT || descriptors() > open + LEFT_OPEN {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = timeout(LONG, ends).await;
    ended.unwrap_or_else(|_| {
        let (left, now) = (ALLOCATED.bytes() - bytes, descriptors());
        panic!("{left} bytes are left, and {now} descriptors of {open}")
    });
}

#[test]
fn channels_and_servers_that_are_dropped_leave_no_memory_behind() {
    child::alone(|| {
        Runtime::new().expect("a runtime").block_on(async {
            let lasts = server().await;
            for number in 0..20 {
                calls(&lasts, number).await;
                calls(&server().await, number).await;
            }
            let before = (ALLOCATED.bytes(), descriptors());
            for number in 0..MANY {
                calls(&lasts, number).await;
            }
            is_left(before).await;
            for number in 0..MANY {
                calls(&server().await, number).await;
            }
            is_left(before).await;
        });
    });
}
