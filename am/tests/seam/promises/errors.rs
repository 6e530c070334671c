//! What errors say.

use std::io;
use std::time::Duration;

use doorbell_am::{
    CallError, ConnectError, Credits, Name, NameError, OpenError, SendError, Tag, Undeliverable,
    Unsent, Unwelcome, WhyGone,
};
use doorbell_kit::chain;
use doorbell_verbs::{Ending, ListenRefused, Private, RegisterError, ResourceError};

const PEER: &str = "udp:192.0.2.7:4791#2a";

fn name() -> String {
    PEER.to_owned()
}

/// Makes an error of sending of each kind.
fn of_sending() -> Vec<SendError> {
    let ending = || Ending::PeerLeft { private: Private::default() };
    vec![
        SendError::NotMapped(7),
        SendError::Gone { peer: PEER.into(), what: Unsent::Message, why: WhyGone::Ended(ending()) },
        SendError::InHandler,
        SendError::TooLong { peer: PEER.into(), what: Unsent::Message, len: 5000, most: 4096 },
        SendError::Words(17),
        SendError::Segment { peer: PEER.into(), offset: 0, len: 1, room: 0 },
        SendError::Segment { peer: PEER.into(), offset: 60, len: 8, room: 64 },
        SendError::NoCredit {
            peer: PEER.into(),
            within: Duration::from_secs(1),
            credits: Credits { under_way: 8, given_up: 1 },
        },
    ]
}

fn of_opening() -> Vec<OpenError> {
    let table: RegisterError = doorbell_core::nic::TableFull(4096).into();
    let service = doorbell_core::wire::ServiceId(42);
    let taken: ListenRefused = doorbell_core::cm::ListenError::Taken(service).into();
    vec![
        ResourceError::QueuePairsFull(8).into(),
        table.into(),
        taken.into(),
        OpenError::Closed,
        OpenError::System {
            what: "starting a thread with a runtime for the bundle, where there is no runtime",
            source: io::Error::other("too many threads"),
        },
        promised(),
    ]
}

fn promised() -> OpenError {
    OpenError::Promised { what: "receives of the endpoint", has: 4, advice: "unmap some" }
}

fn of_mapping() -> Vec<ConnectError> {
    let lost = || CallError::OtherReply { found: 1, index: 2, expected: "sum" };
    let unwelcome = |why| ConnectError::Unwelcome { name: name(), why };
    vec![
        ConnectError::NoRoom { name: name(), why: promised().into() },
        ConnectError::NoRoom { name: name(), why: ResourceError::QueuePairsFull(8).into() },
        unwelcome(Unwelcome::Refused("it has no room")),
        unwelcome(Unwelcome::NotAdmitted { shown: Some(Tag(1).to_string()) }),
        unwelcome(Unwelcome::Unproved { tag: Tag(1).to_string() }),
        unwelcome(Unwelcome::OtherKind("Active Messages")),
        unwelcome(Unwelcome::OtherVersion { what: "streams", here: 2, there: 1 }),
        unwelcome(Unwelcome::OtherHandlers { table: "requests", index: 1, there: "add".into() }),
        ConnectError::Taken { name: name(), index: 3, there: name() },
        ConnectError::Place { name: name(), index: 5000, most: 1024 },
        ConnectError::Lost { name: name(), why: lost().into() },
        ConnectError::Closed { name: name() },
    ]
}

/// Half of them did, so that a program that shows an error with its causes said everything twice.
#[test]
fn no_error_says_what_its_cause_says() {
    of_sending().iter().for_each(|why| drop(chain(why)));
    of_opening().iter().for_each(|why| drop(chain(why)));
    of_mapping().iter().for_each(|why| drop(chain(why)));
    let _ = chain(&NameError::clone(&"udp".parse::<Name>().expect_err("it is none")));
    let _ = chain(&Undeliverable::WrongTag);
}

#[test]
fn an_error_of_mapping_names_the_peer_and_one_of_sending_says_what_to_do() {
    for why in of_mapping() {
        assert!(chain(&why).contains(PEER), "{why}");
    }
    let [none, beyond] = [0, 64]
        .map(|room| SendError::Segment { peer: PEER.into(), offset: 60, len: 8, room }.to_string());
    assert!(none.contains("EndpointConfig::segment") && none.contains("tag"), "{none}");
    assert!(beyond.contains(PEER) && beyond.ends_with("it ends at 64"), "{beyond}");
    let taken = ConnectError::Taken { name: name(), index: 3, there: name() }.to_string();
    assert_eq!(taken.matches(PEER).count(), 1, "{taken}");
    let place = ConnectError::Place { name: name(), index: 5000, most: 1024 }.to_string();
    assert!(place.contains("EndpointConfig::places"), "{place}");
}
