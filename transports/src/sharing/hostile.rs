//! Tests with members that send nonsense, send nothing, read nothing, or do not come.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use doorbell_core::wire::ServiceId;

use super::event::Event;
use super::membership::{Membership, Role};
use super::message::{self, LONGEST, SERVICES, Services};
use super::tag::{claim, owners};
use crate::sys::unix::{ReceivedMessage, Socket};

/// Returns a key that no other test has.
fn key() -> String {
    static KEYS: AtomicU32 = AtomicU32::new(0);
    format!("test/hostile/{}/{}", std::process::id(), KEYS.fetch_add(1, Ordering::Relaxed))
}

/// Takes turns until `is` holds of the events so far, and returns those events.
#[track_caller]
fn until(of: &mut Membership, mut is: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
    let (start, mut events) = (Instant::now(), Vec::new());
    while !is(&events) {
        events.extend(of.turn());
        assert!(start.elapsed() < Duration::from_secs(60), "it hangs; so far {events:?}");
    }
    events
}

/// Returns an owner, and a tag that no process has.
fn owner(key: &str) -> (Membership, u32) {
    let mut owner = Membership::join(key).expect("a membership");
    until(&mut owner, |events| events.contains(&Event::BecameOwner));
    let tag = owner.tag() % 63 + 1;
    (owner, tag)
}

fn call(key: &str, says: &[u8]) -> Socket {
    let socket = Socket::connect(&owners(key)).expect("an owner");
    socket.send(says, None).expect("room");
    socket
}

/// The outcome of a look at the socket of a member.
#[derive(PartialEq, Eq, Debug)]
enum Heard {
    Nothing,
    /// A message about the process of a tag, with its services if it is there.
    Message(u32, Option<Services>),
    /// The owner has closed the connection.
    End,
}

fn hear(socket: &Socket) -> Heard {
    let mut bytes = [0; LONGEST + 1];
    match socket.receive(&mut bytes).unwrap_or(ReceivedMessage::End) {
        ReceivedMessage::Nothing => Heard::Nothing,
        ReceivedMessage::Message(len, _) => {
            let (tag, services) = message::read(&bytes[..len]).expect("what is said makes sense");
            Heard::Message(tag, services)
        }
        ReceivedMessage::End | ReceivedMessage::NoDescriptor => Heard::End,
    }
}

#[test]
fn who_says_what_makes_no_sense_is_hung_up_on_and_the_rest_is_as_it_was() {
    let key = key();
    let (mut owner, tag) = owner(&key);
    let hello = message::write(tag, Some(&Services::new()));
    let mut longer = hello.clone();
    longer.push(0);
    let another = message::write(owner.tag() % 63 + 2, Some(&Services::new()));
    let own = message::write(owner.tag(), Some(&Services::new()));
    let gone = message::write(tag, None);
    let garbage = [vec![7; LONGEST + 1], vec![7], longer, own, gone];
    for says in &garbage {
        let liar = call(&key, says);
        until(&mut owner, |_| hear(&liar) == Heard::End);
    }
    let second = garbage[..3].iter().chain([&another]);
    for says in second {
        let liar = call(&key, &hello);
        until(&mut owner, |events| events.contains(&Event::Joined(tag)));
        liar.send(says, None).expect("room");
        // The liar has not claimed the tag, so its process counts as gone.
        let events = until(&mut owner, |events| events.contains(&Event::Left(tag)));
        assert_eq!(events, [Event::Left(tag)]);
    }
    let mut honest = Membership::join(&key).expect("a membership");
    until(&mut honest, |events| {
        while owner.turn().is_some() {}
        events.contains(&Event::Welcome)
    });
}

#[test]
fn who_connects_and_says_nothing_keeps_nobody_out() {
    let key = key();
    let (mut owner, _) = owner(&key);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(Socket::connect(&owners(&key)).expect("an owner"));
        assert_eq!(owner.turn(), None);
    }
    let Role::Owner(role) = &owner.role else { panic!() };
    assert!(role.held() <= 80);
    let mut honest = Membership::join(&key).expect("a membership");
    until(&mut honest, |events| {
        while owner.turn().is_some() {}
        events.contains(&Event::Welcome)
    });
}

/// Each turn takes a bounded number of messages, and none while events wait to be taken.
#[test]
fn who_changes_all_its_services_again_and_again_fills_no_memory() {
    let key = key();
    let (mut owner, tag) = owner(&key);
    let services = |from: u64| (from..from + SERVICES as u64).map(ServiceId).collect::<Services>();
    let restless = call(&key, &message::write(tag, Some(&services(0))));
    for round in 1..100 {
        let all = services(round * SERVICES as u64);
        // There may be no room in the socket until the owner has read a message.
        let _ = restless.send(&message::write(tag, Some(&all)), None);
        owner.turn();
        // A turn takes a message of each of up to 16 connections, which removes and adds services.
        assert!(
            owner.roster.events.len() <= 16 * 2 * SERVICES + 1,
            "{}",
            owner.roster.events.len()
        );
    }
}

#[test]
fn who_does_not_listen_is_told_how_things_are_when_it_does() {
    let key = key();
    let (mut owner, tag) = owner(&key);
    let deaf = call(&key, &message::write(tag, Some(&Services::new())));
    let _claim = claim(&key, tag).expect("a tag");
    until(&mut owner, |events| events.contains(&Event::Joined(tag)));
    let some: Vec<_> = (0..20).map(ServiceId).collect();
    let rounds = 1000;
    for _ in 0..rounds {
        some.iter().for_each(|&service| owner.listen(service).expect("room"));
        while owner.turn().is_some() {}
        some.iter().for_each(|&service| owner.stop(service));
        while owner.turn().is_some() {}
    }
    owner.listen(ServiceId(1000)).expect("room");
    let (mut last, mut heard) = (Heard::Nothing, 0);
    until(&mut owner, |_| {
        let told = hear(&deaf);
        if told != Heard::Nothing {
            (last, heard) = (told, heard + 1);
        }
        matches!(&last, Heard::Message(_, Some(all)) if all.contains(&ServiceId(1000)))
    });
    assert_eq!(last, Heard::Message(owner.tag(), Some([ServiceId(1000)].into())));
    assert!(heard < rounds, "it can't have been told of each change");
}

#[test]
fn who_is_there_and_does_not_come_is_waited_for_and_not_for_ever() {
    let key = key();
    let absent = claim(&key, 5).expect("a tag");
    let mut owner = Membership::join(&key).expect("a membership");
    let start = Instant::now();
    let events = until(&mut owner, |events| events.contains(&Event::BecameOwner));
    assert!(start.elapsed() > Duration::from_millis(900), "{:?}", start.elapsed());
    assert!(!events.contains(&Event::Left(5)));
    drop(absent);
    until(&mut owner, |events| events.contains(&Event::Left(5)));
}
