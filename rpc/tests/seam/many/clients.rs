//! Many clients of one server at a time.

use doorbell_kit::child::{self, Child};
use doorbell_kit::effort;
use doorbell_rpc::Channel;

use super::common::{LONG, calls, channels, runtime, serve, server, sessions};

/// The NICs that each process has over a network. Over shared memory each client has a NIC.
const NICS: usize = 4;

/// Has processes connect as many clients to a server as are asked for, and has each client call the
/// server again when all are connected.
fn all_are_served(test: &str, kind: &str, clients: usize, processes: usize) {
    let (mut server, name) = server(test);
    let mut children: Vec<_> =
        (0..processes).map(|_| Child::start(test, "clients", None)).collect();
    for process in &mut children {
        process.say(format!("{kind} {name} {}", clients / processes));
    }
    for process in &mut children {
        assert_eq!(process.hear(), "connected");
    }
    assert_eq!(sessions(&mut server), clients);
    children.iter_mut().for_each(|process| process.say("call again"));
    children.into_iter().for_each(Child::end);
    assert_eq!(sessions(&mut server), clients, "clients that have gone are remembered");
}

/// The clients of one process, on several NICs.
fn clients() {
    let asked = child::listen().expect("what to do");
    let [device, name, count] = asked.split(' ').collect::<Vec<_>>()[..] else { panic!("{asked}") };
    let count: usize = count.parse().expect("a number");
    runtime().block_on(async {
        let mut all: Vec<Channel> = Vec::new();
        for nic in 0..NICS {
            // Each keep-alive is another configuration, and so another NIC.
            let silent = std::time::Duration::from_secs(60 + nic as u64);
            let connects = async || {
                let channel = Channel::builder().device(device).keep_alive(silent);
                let channel = channel.own_nic(device == "shm").connect_timeout(LONG);
                channel.connect(name).await.unwrap_or_else(|why| panic!("{why}"))
            };
            all.extend(channels(count / NICS, connects).await);
        }
        child::tell("connected");
        tokio::task::spawn_blocking(child::listen).await.expect("it listens").expect("go on");
        for (number, channel) in all.iter().enumerate() {
            calls(channel, number as u64).await.unwrap_or_else(|why| panic!("{number}: {why}"));
            assert!(channel.is_connected());
        }
    });
}

#[test]
fn thousands_of_clients_are_connected_at_a_time_over_udp() {
    match child::part().as_deref() {
        Some("server") => serve("udp:127.0.0.1:0"),
        Some(_) => clients(),
        None => {
            let test = "many::clients::thousands_of_clients_are_connected_at_a_time_over_udp";
            all_are_served(test, "udp:127.0.0.1:0", effort(1600, 20_000), 4);
        }
    }
}

#[test]
fn hundreds_of_nics_are_connected_to_one_server_at_a_time_over_shared_memory() {
    match child::part().as_deref() {
        Some("server") => serve("shm"),
        Some(_) => clients(),
        None => {
            let test = "many::clients::hundreds_of_nics_are_connected_to_one_server_at_a_time_over_shared_memory";
            all_are_served(test, "shm", effort(416, 4032), effort(8, 16));
        }
    }
}
