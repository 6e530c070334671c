//! Two of these play with each other.

use std::time::Duration;

use doorbell_kit::lab;
use serde_json::Value;

use crate::ours::Ours;
use crate::{json, said};

/// The longest time that a game may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a side that waits. Returns it with its port.
fn waiting(arguments: &str) -> (Ours, u16) {
    let mut waits = Ours::start(&format!("pingpong --port 0 {arguments}"));
    let port = waits.port().expect("it waits");
    (waits, port)
}

/// Plays both sides, on two addresses of this host. Returns the output of the side that asks, and
/// of the side that waits.
fn played(waits: &str, asks: &str) -> [std::process::Output; 2] {
    let (waits, port) = waiting(&format!("-d udp:127.0.0.1:4899 {waits}"));
    let asks = format!("pingpong -d udp:127.0.0.2:4899 --port {port} {asks} 127.0.0.1");
    [Ours::start(&asks), waits].map(|side| side.end(PATIENCE))
}

#[test]
fn two_of_ours_play_by_every_transport_and_check_every_byte() {
    lab::test(|_| {
        for (transport, sizes) in [("rc", [1, 5000]), ("uc", [1, 5000]), ("ud", [1, 1024])] {
            for size in sizes {
                let how = format!("-t {transport} -s {size} -n 200 -r 10 -m 2048 --check --json");
                for output in played(&how, &how) {
                    assert!(output.status.success(), "{how}: {}", said(&output));
                    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                    json::assert_documented(&found);
                    let shape = (&found["transport"], &found["size"]);
                    assert_eq!(shape, (&transport.into(), &size.into()));
                    assert_eq!((&found["iters"], &found["checked"]), (&200.into(), &true.into()));
                }
            }
        }
    });
}

#[test]
fn without_check_and_asleep_it_says_how_long_it_took() {
    lab::test(|_| {
        for output in played("-n 50 --events", "-n 50 --events") {
            assert!(output.status.success(), "{}", said(&output));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.starts_with("409600 bytes in ") && text.contains("50 iters in"), "{text}");
        }
    });
}

#[test]
fn sides_that_were_told_different_things_say_so() {
    lab::test(|_| {
        let [asked, waited] = played("-s 65 --patience 1", "-s 64 --patience 1");
        assert!(!asked.status.success() && !waited.status.success());
        let why = said(&waited);
        assert!(why.contains("message 0 is of 64 bytes, and not of 65"), "{why}");
        let [_, waited] = played("-n 6 --patience 1", "-n 5 --patience 1");
        let why = said(&waited);
        assert!(why.contains("nothing came for 1 s, with 5 of 6 messages sent"), "{why}");
    });
}

#[test]
fn what_cannot_be_is_said_before_anything_is_sent() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let (waits, port) = waiting("-d packet-v2:a0 -m 1024");
        let asks = format!("pingpong -d packet-v2:a0 -m 4096 --port {port} 127.0.0.1");
        let why = said(&Ours::start(&asks).end(PATIENCE));
        assert!(why.contains("packets of 4096 bytes do not go into"), "{why}");
        let heard = said(&waits.end(PATIENCE));
        assert!(heard.contains("exchanging addresses by TCP: hearing the peer's"), "{heard}");
        let nobody = Ours::start("pingpong -d udp:127.0.0.1:0 --port 1 127.0.0.1");
        let why = said(&nobody.end(PATIENCE));
        assert!(why.contains("port 1: does the other side wait there?"), "{why}");
    });
}
