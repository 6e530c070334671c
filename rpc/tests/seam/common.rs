//! Tests that run over each kind of device, and devices that can be opened again.

use std::sync::atomic::{AtomicU16, Ordering};

/// A device of a kind, `shm` or `udp`, that no other test has, and that can be opened again under
/// the same name. Over sockets that is an address of the loopback network for this process alone,
/// and not the port of RoCE, whose peers have to have that port too.
pub fn fixed(kind: &str) -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let [_, a, b, c] = process.to_be_bytes();
    match kind {
        "shm" => format!("shm:rpc-seam/{process}/{number}"),
        _ => format!("udp:127.{}.{b}.{c}:{}", a | 0x80, 5000 + number),
    }
}

/// Declares each test, an async function of a device, over shared memory in a runtime of one
/// thread, and over sockets in one of several threads. None may take longer than `LONG` of the
/// file.
macro_rules! on_each_device {
    ($($test:ident),* $(,)?) => {
        mod over_shared_memory {
            $(#[tokio::test]
            async fn $test() {
                let test = super::$test("shm");
                tokio::time::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
        mod over_sockets {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let test = super::$test("udp:127.0.0.1:0");
                tokio::time::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
    };
}
