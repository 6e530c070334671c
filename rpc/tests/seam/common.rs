//! Tests that run over each kind of device.

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
