//! A NIC that is closed ends what waits on it, on every floor; endpoints that are closed say so.

use std::future::{Future, IntoFuture};
use std::time::Duration;

use doorbell::verbs::{ListenRefused, ListenerEnded, Nic, ServiceId};
use doorbell::{am, bytestream, messages, rpc};
use doorbell_kit::child;
use messages::frames;
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tower::Service;

/// A time in which nothing takes so long but what never ends.
const LONG: Duration = Duration::from_secs(20);

/// Begins to wait for `what`, closes the NIC, and returns the outcome of the wait.
async fn ended_by_closing<F: IntoFuture>(nic: &Nic, what: F) -> F::Output {
    let mut waits = std::pin::pin!(what.into_future());
    tokio::select! {
        biased;
        _ = &mut waits => panic!("nobody is there yet"),
        () = turns() => {}
    }
    nic.close().await;
    tokio::time::timeout(LONG, waits).await.expect("the wait ends with the NIC")
}

async fn turns() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// The devices on which each test runs.
const DEVICES: [&str; 2] = ["shm", "udp:127.0.0.1:0"];

/// Returns the device on which another NIC is reached by this one.
fn like(nic: &Nic) -> &'static str {
    let is_alike = |device: &&&str| device.starts_with(nic.capabilities().name);
    DEVICES.iter().find(is_alike).expect("one of these")
}

async fn with_each<F: Future<Output = ()>>(program: impl Fn(Nic) -> F) {
    for device in DEVICES {
        program(Nic::open(device).await.expect("it opens")).await;
    }
}

#[tokio::test]
async fn a_listener_of_verbs_ends_and_none_is_made_any_more() {
    with_each(|nic| async move {
        let mut listener = nic.listen(ServiceId(7)).await.expect("nobody else listens");
        let ended = ended_by_closing(&nic, listener.accept()).await;
        assert_eq!(ended.expect_err("it is over"), ListenerEnded::NicClosed);
        assert_eq!(listener.accept().await.expect_err("it is over"), ListenerEnded::NicClosed);
        let refused = nic.listen(ServiceId(8)).await.expect_err("it is over");
        assert!(matches!(refused, ListenRefused::NicClosed(_)), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn a_listener_of_byte_streams_ends() {
    with_each(|nic| async move {
        let mut listener = bytestream::Listener::on(&nic, ServiceId(7)).await.expect("room");
        let ended = ended_by_closing(&nic, listener.accept()).await.expect_err("it is over");
        assert!(ended.to_string().contains("its NIC was closed"), "{ended}");
    })
    .await;
}

#[tokio::test]
async fn the_events_of_an_endpoint_of_active_messages_end() {
    with_each(|nic| async move {
        let endpoint = am::Endpoint::on(&nic, am::Handlers::new()).await.expect("room");
        let mut events = endpoint.events();
        let handlers = am::Handlers::new();
        let far = am::Endpoint::open(like(&nic), handlers).await.expect("room");
        ended_by_closing(&nic, events.recv()).await.expect_err("no event comes any more");
        let why = endpoint.connect(far.name()).await.expect_err("the NIC is closed");
        assert!(matches!(why, am::ConnectError::NicClosed(_)), "{why}");
    })
    .await;
}

#[tokio::test]
async fn a_receive_of_messages_ends() {
    with_each(|nic| async move {
        let endpoint = messages::Endpoint::on(&nic).await.expect("room");
        let ended = ended_by_closing(&nic, endpoint.receive(messages::Match::any())).await;
        assert_eq!(ended.expect_err("it is over"), messages::ReceiveError::Closed);
    })
    .await;
}

#[tokio::test]
async fn receives_and_sends_of_frames_end() {
    with_each(|nic| async move {
        let endpoint = frames::Endpoint::on(&nic).await.expect("room");
        let itself = endpoint.connect(endpoint.name()).await.expect("there is a way");
        let receive = endpoint.receive_at_most(100, frames::Match::exactly(7));
        let ended = ended_by_closing(&nic, receive).await;
        assert_eq!(ended.expect_err("it is over"), frames::ReceiveError::Closed);
        let sent = tokio::time::timeout(LONG, itself.send(7, "late")).await.expect("it ends");
        assert!(matches!(sent, Err(frames::SendError::Closed { .. })), "{sent:?}");
    })
    .await;
}

#[tokio::test]
async fn a_channel_is_over() {
    with_each(|nic| async move {
        let server = rpc::Server::builder().open(like(&nic)).await.expect("room");
        let channel = rpc::Channel::builder().on(&nic).connect(server.name()).await;
        let channel = channel.expect("the server is there");
        nic.close().await;
        let mut calls = channel.when_ready();
        let over = loop {
            let ready = std::future::poll_fn(|context| calls.poll_ready(context));
            match tokio::time::timeout(LONG, ready).await.expect("it ends") {
                // The channel has not heard of the end yet.
                Ok(()) => yield_now().await,
                Err(over) => break over,
            }
        };
        assert!(over.message().contains("its NIC was closed"), "{over}");
    })
    .await;
}

#[tokio::test]
async fn endpoints_that_are_closed_say_so_to_who_sends_and_connects() {
    for device in DEVICES {
        let open = || messages::Endpoint::open(device);
        let (near, far) = (open().await.expect("room"), open().await.expect("room"));
        let peer = near.connect(far.name()).await.expect("it is there");
        near.close().await.expect("nothing was sent");
        let sent = peer.send(7, "late").await.expect_err("the endpoint is closed");
        assert!(matches!(sent, messages::SendError::Closed { .. }), "{sent}");
        let why = near.connect(far.name()).await.expect_err("the endpoint is closed");
        assert!(matches!(why, messages::ConnectError::Closed { .. }), "{why}");

        let open = || frames::Endpoint::open(device);
        let (near, far) = (open().await.expect("room"), open().await.expect("room"));
        let peer = near.connect(far.name()).await.expect("it is there");
        near.close().await.expect("nothing was sent");
        let sent = peer.send(7, "late").await.expect_err("the endpoint is closed");
        assert!(matches!(sent, frames::SendError::Closed { .. }), "{sent}");
        let why = near.connect(far.name()).await.expect_err("the endpoint is closed");
        assert!(matches!(why, messages::ConnectError::Closed { .. }), "{why}");
    }
}

#[tokio::test]
async fn what_a_closed_nic_has_not_sent_is_named_by_the_error_of_closing() {
    const NEWS: am::Notice<u64> = am::Notice::new("news");
    for device in DEVICES {
        let handlers = am::Handlers::new().on(NEWS, |_, _| {});
        let far = am::Endpoint::open(device, handlers).await.expect("room");
        let nic = Nic::open(device).await.expect("it opens");
        let near = am::Endpoint::on(&nic, am::Handlers::new()).await.expect("room");
        let peer = near.connect(far.name()).await.expect("it is there");
        peer.notify(NEWS, 7).await.expect("there is a credit");
        nic.close().await;
        let why = near.close().await.expect_err("whether the peer has it is not known");
        assert_eq!(why.given_up[0].peer, far.name().to_string());
        assert_eq!(why.given_up[0].why, am::WhyGivenUp::NicClosed);

        let open = || frames::Endpoint::open(device);
        let (nic, far) = (Nic::open(device).await.expect("room"), open().await.expect("room"));
        let near = frames::Endpoint::on(&nic).await.expect("room");
        let peer = near.connect(far.name()).await.expect("there is a way");
        let send = peer.send(7, vec![7; 100_000]);
        nic.close().await;
        let why = near.close().await.expect_err("nobody has received it");
        assert_eq!(why.given_up[0].why, am::WhyGivenUp::NicClosed, "{why}");
        assert!(matches!(send.await, Err(frames::SendError::Closed { .. })));
    }
}

/// A program that starts anew in its own place would have to try again and again.
#[test]
fn the_address_of_an_endpoint_that_is_closed_and_dropped_is_free() {
    child::alone(|| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(opens_again());
    });
}

async fn opens_again() {
    macro_rules! opens_again {
        ($open:expr) => {
            for _ in 0..20 {
                let endpoint = $open.await.expect("the address is free");
                endpoint.close().await.expect("there is nothing to be lost");
            }
        };
    }
    let name = format!("shm:facade-closed-{}", std::process::id());
    let device = &*name;
    opens_again!(am::Endpoint::open(device, am::Handlers::new()));
    opens_again!(messages::Endpoint::open(device));
    opens_again!(messages::streams::Endpoint::open(device));
    opens_again!(frames::Endpoint::open(device));
    opens_again!(bytestream::Endpoint::open(device));
    opens_again!(rpc::Server::builder().open(device));
    for _ in 0..20 {
        drop(messages::Endpoint::open(device).await.expect("the address is free"));
        drop(bytestream::Listener::open(device, ServiceId(7)).await.expect("the address is free"));
    }
}
