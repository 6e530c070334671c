//! The error of sending that all floors share: what each kind says, which peer it names, and
//! whether another attempt may succeed.

use std::time::Duration;

use doorbell_verbs::{Credits, Ending, Private, SendError, Unsent, WhyGone};

use crate::errors::says;

const PEER: &str = "udp:192.0.2.7:4791#2a";

/// Whether sending the same again may succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Again {
    May,
    Never,
}

/// An error of each kind, whether another attempt may succeed, and words that the error says beside
/// the peer's name.
fn errors() -> Vec<(SendError, Again, &'static [&'static str])> {
    use Again::{May, Never};
    use SendError as E;
    let (bytes, stream) = (Unsent::Bytes(12), "file");
    let peer = || PEER.into();
    let gone = |what, why| E::Gone { peer: peer(), what, why };
    let ended = || WhyGone::Ended(Ending::PeerLeft { private: Private::default() });
    let left = || WhyGone::Ended(Ending::Left { private: Private::default() });
    let patience = Duration::from_secs(10);
    let credits = Credits { under_way: 8, given_up: 1 };
    let known = Some(["add".to_owned()].into());
    vec![
        (
            gone(Unsent::Message, ended()),
            May,
            &["sending a message to ", "the peer ended the connection; ", "connected to again"],
        ),
        (gone(Unsent::Message, left()), May, &["its `Endpoint` was closed or dropped"]),
        (gone(bytes, ended()), May, &["sending 12 bytes to ", "has received them is not known"]),
        (gone(bytes, WhyGone::EndedHere), May, &["the peer broke the rules of the protocol"]),
        (gone(bytes, WhyGone::NotConnected), May, &["the peer is not connected"]),
        (gone(bytes, WhyGone::LongAgo), May, &["long ago"]),
        (
            gone(bytes, WhyGone::Closed),
            May,
            &["closed its endpoint; whether the peer has received them is not known"],
        ),
        (
            gone(bytes, WhyGone::Unconfirmed(patience)),
            May,
            &["for 10s; the peer has no receive posted", "all messages to it are given up"],
        ),
        (gone(Unsent::Stream(stream), ended()), May, &["sending `file` to ", "peer ended"]),
        (E::Closed { peer: peer(), what: bytes }, Never, &["12 bytes", "here has ended"]),
        (E::Cancelled, May, &["was cancelled"]),
        (
            E::TooLong { peer: peer(), what: Unsent::Message, len: 5000, most: 4096 },
            Never,
            &["a payload of 5000 bytes, with the words beyond 16, is more than the 4096"],
        ),
        (
            E::TooLong { peer: peer(), what: bytes, len: 12, most: 10 },
            Never,
            &["at most 10 bytes; send several"],
        ),
        (E::Words(17), Never, &["17 words are more than the 16"]),
        (E::Segment { peer: peer(), offset: 60, len: 8, room: 64 }, Never, &["it ends at 64"]),
        (E::NotMapped(7), May, &["at place 7", "Endpoint::map"]),
        (E::NotConnected { peer: peer() }, May, &["was disconnected already"]),
        (E::InHandler, Never, &["a handler may only reply"]),
        (
            E::NoCredit { peer: peer(), within: patience, credits },
            May,
            &["8 requests are under way, of which 1 is a call", "EndpointConfig::credits"],
        ),
        (E::NoHandler { peer: peer(), name: "sum", known }, Never, &["`sum`: it has `add`"]),
        (
            E::NoHandler { peer: peer(), name: stream, known: None },
            Never,
            &["no handler `file`", "EndpointBuilder::handler"],
        ),
        (
            E::OtherTypes { peer: peer(), name: "sum", here: "u64".into(), there: "u8".into() },
            Never,
            &["u64 in this program, and u8 at the peer"],
        ),
        (E::NoListing { peer: peer() }, Never, &["is no listing of handlers"]),
        (E::NotListed { peer: peer(), why: "no answer".into() }, May, &["answered: no answer"]),
        (E::NotReceived { peer: peer(), what: bytes }, May, &["12 bytes", "pulling its body"]),
        (
            E::NoRoom { peer: peer(), what: bytes, why: "its table is full".into() },
            May,
            &["12 bytes", "can't be registered: its table is full"],
        ),
        (E::HandlerReturned { peer: peer(), stream }, May, &["`file`", "before the end"]),
        (
            E::HandlerFailed { peer: peer(), stream, text: "no room".into() },
            May,
            &["`file`", "its handler has failed: no room"],
        ),
        (E::HandlerPanicked { peer: peer(), stream }, May, &["`file`", "has panicked"]),
        (E::Refused { peer: peer(), stream }, Never, &["both sides need the same version"]),
    ]
}

#[test]
fn an_error_of_sending_names_its_peer_and_says_what_was_found() {
    for (why, _, words) in errors() {
        says(&why, words);
        assert_eq!(why.to_string().contains(PEER), why.peer().is_some(), "{why}");
        assert!(why.peer().is_none_or(|peer| peer == PEER), "{why}");
        let nameless = matches!(
            why,
            SendError::Cancelled
                | SendError::Words(_)
                | SendError::NotMapped(_)
                | SendError::InHandler
        );
        assert_eq!(why.peer().is_none(), nameless, "{why}");
    }
}

#[test]
fn an_error_of_sending_is_final_if_another_attempt_must_fail_too() {
    for (why, again, _) in errors() {
        assert_eq!(why.is_final(), again == Again::Never, "{why}");
    }
}

#[test]
fn an_error_of_sending_is_small_enough_to_be_returned_from_a_fast_path() {
    let size = size_of::<SendError>();
    assert!(size <= 80, "{size} bytes");
}
