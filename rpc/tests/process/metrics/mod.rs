//! Calls are counted and timed, over shared memory and sockets.

mod kept;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{
    Channel, Client, Method, Raw, Request, Router, Server, Status, Streaming, record_nic,
};
use futures_util::{StreamExt, stream};
use tokio::sync::Notify;
use tokio::time::timeout;

use kept::{count, gauge};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// The places of a test: the device, and the path of the method that it alone calls.
#[derive(Clone, Copy)]
struct Here {
    device: &'static str,
    path: &'static str,
}

impl Here {
    fn method<A, R>(self) -> Method<A, R> {
        Method::new(self.path)
    }

    async fn pair(self, router: Router) -> (Server, Client<Channel>) {
        kept::install();
        let server = Server::builder().add_service(router).open(self.device).await;
        let server = server.expect("the device opens");
        let channel = Channel::connect(server.name()).await.expect("the server is there");
        (server, Client::new(channel))
    }

    /// How many calls of the method have ended with a code, at the client and at the server.
    fn ended(self, code: &str) -> [u64; 2] {
        let names = ["doorbell_rpc_client_calls_total", "doorbell_rpc_server_calls_total"];
        names.map(|name| count(name, &[("method", self.path), ("code", code)]))
    }

    /// How many calls of the method were timed, at the client and at the server.
    fn timed(self) -> [u64; 2] {
        let names = ["doorbell_rpc_client_call_seconds", "doorbell_rpc_server_call_seconds"];
        names.map(|name| count(name, &[("method", self.path)]))
    }

    /// How many calls of the method have not ended, at the client and at the server.
    fn in_flight(self) -> [f64; 2] {
        let names = ["doorbell_rpc_client_in_flight", "doorbell_rpc_server_in_flight"];
        names.map(|name| gauge(name, &[("method", self.path)]))
    }
}

async fn calls_are_counted_by_method_and_code_and_timed_at_both_ends(here: Here) {
    let router = Router::new().unary(here.method(), |request| async move {
        let good: bool = request.into_inner();
        if good { Ok(()) } else { Err(Status::not_found("it is not here")) }
    });
    let (_server, client) = here.pair(router).await;
    for good in [true, false, true, true] {
        let _ = client.unary(here.method::<bool, ()>(), good).await;
    }
    assert_eq!((here.ended("Ok"), here.ended("NotFound")), ([3; 2], [1; 2]));
    assert_eq!((here.timed(), here.in_flight()), ([4; 2], [0.0; 2]));
}

async fn calls_are_in_flight_until_they_are_given_up(here: Here) {
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let router = Router::new().unary(here.method::<(), ()>(), move |_| {
        begins.notify_one();
        std::future::pending::<Result<(), Status>>()
    });
    let (server, client) = here.pair(router).await;
    let mut call = Box::pin(client.unary(here.method::<(), ()>(), ()));
    tokio::select! {
        answer = &mut call => panic!("{answer:?}"),
        () = begun.notified() => {}
    }
    assert_eq!(here.in_flight(), [1.0; 2]);
    drop(call);
    server.close().await.expect("clients take their answers");
    assert_eq!((here.ended("Cancelled"), here.in_flight()), ([1; 2], [0.0; 2]));
}

async fn calls_end_when_their_deadline_is_over(here: Here) {
    let router = Router::new()
        .unary(here.method::<(), ()>(), |_| std::future::pending::<Result<(), Status>>());
    let (server, client) = here.pair(router).await;
    let mut request = Request::new(());
    request.set_timeout(Duration::from_millis(50));
    client.unary(here.method::<(), ()>(), request).await.expect_err("it never ends");
    server.close().await.expect("clients take their answers");
    let [at_client, at_server] = here.ended("DeadlineExceeded");
    // The server may have heard first that the caller has given up.
    assert_eq!((at_client, at_server + here.ended("Cancelled")[1]), (1, 1));
}

async fn a_call_that_is_answered_by_a_stream_ends_with_the_stream(here: Here) {
    let router = Router::new().server_streaming(here.method::<u64, u64>(), |request| async move {
        let bad = stream::once(async { Err(Status::data_loss("the disk is broken")) });
        Ok(Streaming::new(stream::iter(0..request.into_inner()).map(Ok).chain(bad)))
    });
    let (_server, client) = here.pair(router).await;
    let answer = client.server_streaming(here.method::<u64, u64>(), 10_000).await;
    let mut numbers = answer.expect("it streams").into_inner();
    numbers.message().await.expect("a number");
    assert_eq!(here.in_flight(), [1.0; 2]);
    while numbers.message().await.is_ok() {}
    assert_eq!((here.ended("DataLoss"), here.in_flight()), ([1; 2], [0.0; 2]));
    assert_eq!((here.ended("Ok"), here.timed()), ([0; 2], [1; 2]));
}

async fn permits_that_are_left_add_up_over_the_channels_to_a_server(here: Here) {
    let router = Router::new().server_streaming(here.method::<(), ()>(), |_| async {
        Ok(Streaming::new(stream::pending()))
    });
    let (server, client) = here.pair(router).await;
    let name = server.name().to_string();
    let left = || gauge("doorbell_rpc_client_permits", &[("server", &name)]);
    assert_eq!(left(), 256.0);
    let other = Channel::builder().in_flight(5).connect(server.name()).await;
    let other = Client::new(other.expect("the server is there"));
    assert_eq!(left(), 261.0);
    let stream = other.server_streaming(here.method::<(), ()>(), ()).await.expect("it streams");
    assert_eq!(left(), 260.0);
    drop(stream);
    assert_eq!(left(), 261.0);
    drop((client, other));
    assert_eq!(left(), 0.0);
}

async fn refused_calls_are_counted_by_code(here: Here) {
    let (_server, client) = here.pair(Router::new()).await;
    let refused = || count("doorbell_rpc_server_refused_total", &[("code", "Unimplemented")]);
    let before = refused();
    client.unary(here.method::<(), ()>(), ()).await.expect_err("there is no such method");
    assert!(refused() > before);
    assert_eq!(here.ended("Unimplemented"), [1, 0]);
}

async fn a_call_that_is_sent_again_over_another_connection_is_counted(here: Here) {
    let method = here.method::<(), ()>().idempotent();
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let router = Router::new().unary(method, move |_| {
        begins.notify_one();
        std::future::pending::<Result<(), Status>>()
    });
    let (server, client) = here.pair(router).await;
    let name = server.name().clone();
    let call = client.unary(method, ());
    let opens_again = async {
        begun.notified().await;
        drop(server);
        let router = Router::new().unary(method, |_| async { Ok(()) });
        loop {
            let server = Server::builder().add_service(router.clone()).service(name.service().0);
            match server.open(name.address()).await {
                Ok(server) => return server,
                // The address is free as soon as the NIC of the first server has gone.
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let (answer, _server) = tokio::join!(call, opens_again);
    answer.expect("the new server answers");
    assert!(count("doorbell_rpc_client_resent_total", &[("method", here.path)]) >= 1);
    let name = name.to_string();
    assert_eq!(count("doorbell_rpc_client_reconnects_total", &[("server", &name)]), 1);
    assert_eq!((here.ended("Ok"), here.ended("Cancelled")), ([1, 1], [0, 1]));
}

async fn bytes_of_long_bodies_are_counted_in_both_directions(here: Here) {
    let method: Method<Bytes, Bytes, Raw> = Method::new(here.path);
    let router = Router::new().unary(method, |request| async move { Ok(request.into_inner()) });
    let (_server, client) = here.pair(router).await;
    let bytes = || {
        ["sent", "received"]
            .map(|direction| count("doorbell_rpc_body_bytes_total", &[("direction", direction)]))
    };
    let before = bytes();
    client.unary(method, Bytes::from(vec![7; 100_000])).await.expect("it is echoed");
    // There and back. Other tests of this process may send long bodies meanwhile.
    let after = bytes();
    assert!(after[0] >= before[0] + 200_000 && after[1] >= before[1] + 200_000, "{after:?}");
}

async fn what_the_nics_of_both_ends_have_counted_is_recorded_when_asked_for(here: Here) {
    let router = Router::new().unary(here.method::<(), ()>(), |_| async { Ok(()) });
    let (server, client) = here.pair(router).await;
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    client.unary(here.method::<(), ()>(), ()).await.expect("it is answered");
    for nic in [server.nic(), channel.nic()] {
        record_nic(nic);
        let address = nic.address().to_string();
        let statistics = nic.statistics().nic;
        let recorded = |name| count(name, &[("nic", &address)]);
        assert!((1..=statistics.received).contains(&recorded("doorbell_nic_received")));
        assert!(recorded("doorbell_nic_retransmitted") <= statistics.retransmitted);
        assert!(kept::is_there("doorbell_nic_retransmitted", &[("nic", &address)]));
    }
}

#[tokio::test]
async fn the_guide_has_all_names_in_its_table_and_no_others() {
    let here = Here { device: "shm", path: "names" };
    let (_server, client) = here.pair(Router::new()).await;
    client.unary(here.method::<(), ()>(), ()).await.expect_err("there is no such method");
    let guide = include_str!("../../../../docs/guides/rpc-observability.md");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `doorbell_rpc_"));
    let rows = rows.map(|row| row.split('`').next().expect("there is a first part"));
    let mut names: Vec<_> = rows.map(|name| format!("doorbell_rpc_{name}")).collect();
    names.sort();
    assert_eq!(names, kept::described());
}

/// Runs each test over each device, with a method of its own.
macro_rules! on_each_device {
    ($($test:ident),* $(,)?) => {
        mod over_shared_memory {
            $(#[tokio::test]
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let path = concat!(stringify!($test), "/shm");
                let test = super::$test(super::Here { device: "shm", path });
                super::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
        mod over_sockets {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let path = concat!(stringify!($test), "/udp");
                let test = super::$test(super::Here { device: "udp:127.0.0.1:0", path });
                super::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
    };
}

on_each_device!(
    calls_are_counted_by_method_and_code_and_timed_at_both_ends,
    calls_are_in_flight_until_they_are_given_up,
    calls_end_when_their_deadline_is_over,
    a_call_that_is_answered_by_a_stream_ends_with_the_stream,
    permits_that_are_left_add_up_over_the_channels_to_a_server,
    refused_calls_are_counted_by_code,
    a_call_that_is_sent_again_over_another_connection_is_counted,
    bytes_of_long_bodies_are_counted_in_both_directions,
    what_the_nics_of_both_ends_have_counted_is_recorded_when_asked_for,
);
