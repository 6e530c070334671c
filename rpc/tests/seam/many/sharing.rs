//! What the channels of a process share, and what each takes for itself.

use doorbell_kit::{child, effort, lab};
use doorbell_rpc::Channel;

use super::common::{channels, descriptors, resident, runtime, serve, server};

/// The most descriptors that a process may have for its channels, however many there are.
const MOST_DESCRIPTORS: usize = 64;
/// The most resident memory of a channel that is idle: a buffer for a message of the server, of a
/// little more than 4 KiB, and a little more than three times as much for all else, of which half a
/// KiB says what is known of the path.
const MOST_RESIDENT: usize = (17 << 10) + 512;

async fn connected(name: &str) -> Channel {
    Channel::connect(name).await.unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn channels_of_a_process_share_a_nic_and_take_no_descriptors_and_little_memory() {
    const NAME: &str = "many::sharing::channels_of_a_process_share_a_nic_and_take_no_descriptors_and_little_memory";
    match child::part().as_deref() {
        Some("server") => serve("udp:127.0.0.1:0"),
        Some(_) => footprint(&child::listen().expect("the name of the server")),
        None => {
            let (_server, name) = server(NAME);
            let mut clients = child::Child::start(NAME, "clients", None);
            clients.say(name);
            println!("{}", clients.hear());
            clients.end();
        }
    }
}

fn footprint(name: &str) {
    let count = effort(1500, 10_000);
    runtime().block_on(async {
        // Code and tables that are there for the first channels are not counted.
        let first = channels(64, async || connected(name).await).await;
        let before = (descriptors(), resident());
        let more = channels(count, async || connected(name).await).await;
        let taken = (descriptors() - before.0, (resident() - before.1) / count);
        child::tell(format!("{count} channels: {} descriptors, {} bytes each", taken.0, taken.1));
        assert!(taken.0 <= MOST_DESCRIPTORS, "{} descriptors", taken.0);
        assert!(taken.1 <= MOST_RESIDENT, "{} bytes are resident for each", taken.1);
        drop((first, more));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_has_a_nic_of_its_own_if_it_is_told_so_or_is_configured_otherwise() {
    let server = doorbell_rpc::Server::builder().add_service(super::common::router());
    let server = server.open("udp:127.0.0.1:0").await.expect("it opens");
    let at = |channel: &Channel| channel.nic().address().to_string();
    let plain = || Channel::builder().device("udp:127.0.0.1:0");
    let name = || server.name().to_string();
    let one = plain().connect(name()).await.expect("it is there");
    let other = plain().connect(name()).await.expect("it is there");
    let own = plain().own_nic(true).connect(name()).await.expect("it is there");
    let silent = plain().keep_alive(std::time::Duration::from_secs(3));
    let silent = silent.connect(name()).await.expect("it is there");
    assert_eq!(at(&one), at(&other));
    assert_ne!(at(&one), at(&own));
    assert_ne!(at(&one), at(&silent));
    assert_ne!(at(&own), at(&silent));
}

// Each had an address of its own in the loopback network, and so a NIC of its own.
#[test]
fn channels_to_a_server_at_roces_port_of_loopback_share_a_nic() {
    lab::test(|_| {
        runtime().block_on(async {
            let server = doorbell_rpc::Server::builder().add_service(super::common::router());
            let server = server.open("udp:127.0.0.1:4791").await.expect("nobody else is here");
            let at = |channel: &Channel| channel.nic().address().to_string();
            let name = server.name().to_string();
            let (one, other) = (connected(&name).await, connected(&name).await);
            assert_eq!(at(&one), at(&other));
            let own = Channel::builder().own_nic(true).connect(server.name()).await;
            assert_ne!(at(&one), at(&own.expect("it is there")));
        });
    });
}

#[test]
fn channels_go_on_when_another_runtime_ends_that_made_channels_before_them() {
    let (server, name) = {
        let runtime = runtime();
        let server = runtime.block_on(async {
            let server = doorbell_rpc::Server::builder().add_service(super::common::router());
            server.open("udp:127.0.0.1:0").await.expect("it opens")
        });
        let name = server.name().to_string();
        ((server, runtime), name)
    };
    let first = runtime();
    let before = first.block_on(channels(2, async || connected(&name).await));
    let second = runtime();
    let after = second.block_on(channels(2, async || connected(&name).await));
    drop(first);
    second.block_on(async {
        for client in &after {
            super::common::calls(client, 7).await.unwrap_or_else(|why| panic!("{why}"));
        }
        let ended = super::common::calls(&before[0], 7).await.expect_err("its runtime has ended");
        assert!(ended.message().contains("runtime"), "{ended}");
    });
    drop(server);
}
