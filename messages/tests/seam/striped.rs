//! Endpoints on several devices: messages go by all of them, in one order, and survive the loss of
//! one.

use std::time::Duration;

use bytes::Bytes;
use doorbell_messages::{Endpoint, Match, Peer};
use tokio::time::timeout;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(LONG, future).await.expect("it ends in time")
}

/// Two endpoints on two devices each, the first of which has connected to the other.
async fn pair(devices: [&str; 2]) -> (Endpoint, Endpoint, Peer) {
    let open = || Endpoint::builder().block(10_000).open_all(&devices);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let peer = near.connect_all(&far.names()).await.expect("the other endpoint is there");
    (near, far, peer)
}

/// The body of the message with a number, some of which are long.
fn body(number: u64) -> Bytes {
    let len = [8, 100, 5000, 200_000][number as usize % 4];
    let byte = |at: usize| (at as u64 * 31 + number) as u8;
    (0..len).map(byte).collect::<Vec<_>>().into()
}

/// Has messages go both ways, and calls a function when some have come.
async fn exchange(near: &Endpoint, far: &Endpoint, there: &Peer, mut at: impl FnMut(u64)) {
    const COUNT: u64 = 400;
    in_time(there.send(99, "hello")).await.expect("it is sent");
    let back = in_time(far.receive(Match::exactly(99))).await.expect("it was sent").from;
    let sends = async {
        for number in 0..COUNT {
            let sends = [there.send(1, body(number)), back.send(2, body(number))];
            for send in sends {
                in_time(send).await.expect("it was received");
            }
        }
    };
    let receives = async {
        for number in 0..COUNT {
            for (end, bits) in [(far, 1), (near, 2)] {
                let message = in_time(end.receive(Match::exactly(bits))).await;
                let message = message.expect("it was sent");
                assert!(message.body == body(number), "message {number} comes whole, in its turn");
            }
            at(number);
        }
    };
    tokio::join!(sends, receives);
}

/// The packets that the endpoint's devices have sent.
fn sent(endpoint: &Endpoint) -> Vec<u64> {
    endpoint.bundles().iter().map(|bundle| bundle.statistics().requests).collect()
}

#[tokio::test]
async fn messages_go_by_all_devices_in_one_order() {
    let (near, far, peer) = pair(["udp:127.0.0.1:0", "shm"]).await;
    exchange(&near, &far, &peer, |_| ()).await;
    for requests in [sent(&near), sent(&far)] {
        assert!(requests.iter().all(|&requests| requests > 100), "both are used: {requests:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_with_a_device() {
    for lost in 0..2 {
        let (near, far, peer) = pair(["udp:127.0.0.1:0", "udp:127.0.0.1:0"]).await;
        exchange(&near, &far, &peer, |number| {
            if number == 100 {
                near.bundles()[lost].nic().close_blocking();
            }
        })
        .await;
        // Packets of the connection that had ended, and were handled after that, were counted.
        assert_eq!([near, far].map(|end| end.statistics().malformed), [0, 0]);
    }
}

#[tokio::test]
async fn an_endpoint_with_several_devices_meets_one_with_a_single_one() {
    let near = Endpoint::builder().open_all(&["udp:127.0.0.1:0", "shm"]).await.expect("it opens");
    let far = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
    let peer = near.connect_all(&far.names()).await.expect("it is there");
    exchange(&near, &far, &peer, |_| ()).await;
    let peer = far.connect_all(&near.names()).await.expect("it is there");
    exchange(&far, &near, &peer, |_| ()).await;
}

/// A long body, which takes many reads.
const LONG_BODY: usize = 16 << 20;

// A long message whose pull had begun, or was about to, was lost with a device, although another
// was there.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_long_message_is_pulled_over_the_device_that_is_left() {
    for packets in [0, 1, 5, 20, 1000] {
        for (lost, of_receiver) in [(0, true), (1, true), (0, false), (1, false)] {
            is_pulled_although_a_device_is_lost(packets, lost, of_receiver).await;
        }
    }
}

/// Has an endpoint lose a device when so many packets have come since a long message was sent.
async fn is_pulled_although_a_device_is_lost(packets: u64, lost: usize, of_receiver: bool) {
    let (near, far, peer) = pair(["udp:127.0.0.1:0", "udp:127.0.0.1:0"]).await;
    let body = Bytes::from(vec![7; LONG_BODY]);
    let came = || -> u64 {
        far.bundles().iter().map(|bundle| bundle.nic().statistics().nic.received).sum()
    };
    let before = came();
    let (receive, send) = (far.receive(Match::exactly(5)), peer.send(5, body.clone()));
    let loses = async {
        while came() < before + packets {
            tokio::task::yield_now().await;
        }
        let end = if of_receiver { &far } else { &near };
        end.bundles()[lost].nic().close_blocking();
    };
    let (message, ()) = tokio::join!(in_time(receive), loses);
    let why = format!("{packets} packets, device {lost}, of the receiver: {of_receiver}");
    assert!(message.unwrap_or_else(|is| panic!("{why}: {is}")).body == body);
    in_time(send).await.expect("it was received");
    // What is sent later comes, too, and nobody has broken the rules.
    in_time(peer.send(6, "behind")).await.expect("it is sent");
    assert_eq!(in_time(far.receive(Match::exactly(6))).await.expect("it was sent").body, "behind");
    assert_eq!([&near, &far].map(|end| end.statistics().malformed), [0, 0], "{why}");
}

// Packets that had come by a connection, and were handled when it had ended, were counted as
// malformed; those that waited for an earlier one were lost by that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_has_come_by_a_device_is_lost_or_malformed_when_the_device_is() {
    const COUNT: u64 = 3000;
    for round in 0..10 {
        let (near, far, peer) = pair(["udp:127.0.0.1:0", "udp:127.0.0.1:0"]).await;
        let receives = (0..COUNT).map(|number| far.receive(Match::exactly(number)));
        let receives: Vec<_> = receives.collect();
        let sends: Vec<_> = (0..COUNT).map(|number| peer.send(number, vec![7; 200])).collect();
        let loses = tokio::spawn({
            let end = if round % 2 == 0 { near.clone() } else { far.clone() };
            async move {
                tokio::time::sleep(Duration::from_micros(300 * round)).await;
                end.bundles()[round as usize / 2 % 2].nic().close_blocking();
            }
        });
        for receive in receives {
            assert_eq!(in_time(receive).await.expect("it was sent").body[..], [7; 200]);
        }
        for send in sends {
            in_time(send).await.expect("it is sent");
        }
        loses.await.expect("no panic");
        let malformed = [near, far].map(|end| end.statistics().malformed);
        assert_eq!(malformed, [0, 0], "in round {round}");
    }
}
