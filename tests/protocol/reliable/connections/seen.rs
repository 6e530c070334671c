//! What occurred to connections: what was said, and how they came about and to an end.

use doorbell_core::cm::{Counters, Event, Why};
use doorbell_core::connect::Route;
use doorbell_core::encap::Opener;
use doorbell_core::pcap::Reader;
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::{Mad, Message};

use crate::reliable::random::coverage::{Coverage, name};

/// Everything that a crowd of connections on a bad network must show, between nodes of which some
/// begin anew.
pub const ALL: &[&str] = &[
    "message Req",
    "message Mra",
    "message Rep",
    "message Rtu",
    "message Rej: no answer came in time",
    "message Rej: the communication id is not known",
    "message Rej: the peer's program refused",
    "message Dreq",
    "message Drep",
    "event Asked",
    "event Replied",
    "event Established",
    "event Failed: TimedOut",
    "event Failed: refused, the communication id is not known",
    "event Failed: refused, the peer's program refused",
    "event Ended: Agreed",
    "event Ended: PeerLeft",
    "event Ended: TimedOut",
    "event Released",
    "data came first",
    "both asked",
    "both ended it",
    "said again",
    "heard again",
    "claimed",
    "event Newcomer",
    "refused",
    "timed out",
    "of no connection that is known",
];

/// Notes every message of a capture.
pub fn messages(pcap: &[u8], seen: &mut Coverage) {
    let mut opener = Opener::default();
    for record in Reader::new(pcap).expect("a capture") {
        let frame = record.expect("a whole capture").data;
        let arrival = opener.open(frame, None).expect("nothing is corrupted");
        for packet in arrival.map(|packet| packet.expect("nothing is corrupted")) {
            if packet.headers.bth.destination() != Qpn::GSI {
                continue;
            }
            let Mad { message, .. } = Mad::parse(packet.payload).expect("of a manager of ours");
            match message {
                Message::Rej(rej) => seen.note(format!("message Rej: {}", rej.reason), 1),
                _ => seen.note(format!("message {}", name(&message)), 1),
            }
        }
    }
}

/// Notes what a program was told.
pub fn event(event: &Event<Route>, seen: &mut Coverage) {
    let why = match event {
        Event::Failed { why, .. } | Event::Ended { why, .. } => match why {
            Why::Refused { reason, .. } => format!(": refused, {reason}"),
            why => format!(": {}", name(why)),
        },
        _ => String::new(),
    };
    seen.note(format!("event {}{why}", name(event)), 1);
}

/// Notes what a manager has counted.
pub fn counters(counters: &Counters, seen: &mut Coverage) {
    for (what, count) in [
        ("said again", counters.resent),
        ("heard again", counters.duplicates),
        ("of no connection that is known", counters.unknown),
        ("claimed", counters.claims),
        ("refused", counters.refused),
        ("timed out", counters.timed_out),
    ] {
        seen.note(what, count);
    }
}
