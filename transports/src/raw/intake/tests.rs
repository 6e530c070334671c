use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use doorbell_core::wire::{EtherType, Mac};
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::until;

use super::*;
use crate::clock::Clock;
use crate::sys::interface::Interface;

/// An EtherType that IEEE leaves to experiments.
const PROTOCOL: EtherType = EtherType(0x88B5);
/// How many frames are under way: fewer than a ring holds.
const WINDOW: u64 = 100;
const CHANGES: usize = 30;

fn recipe(interface: &str, runs: bool) -> Recipe {
    let Interface { index, .. } = Interface::named(interface).expect("the interface is there");
    Recipe { index, protocol: PROTOCOL, filter: vec![vec![]], own: None, runs, addresses: vec![] }
}

fn listening(recipe: &Recipe) -> RingSocket {
    let source = recipe.make().expect("a socket");
    recipe.begin(&source).expect("the interface is there");
    source
}

/// Sends frames that are numbered, of which the first `taken` have been taken, until it is told to
/// end.
fn send_all(socket: &PacketSocket, to: Mac, longest: usize, taken: &AtomicU64, end: &AtomicBool) {
    let mut frame = vec![0xFF; longest];
    frame[..6].copy_from_slice(&to.0);
    frame[12..14].copy_from_slice(&PROTOCOL.0.to_be_bytes());
    for number in 0_u64.. {
        while number >= taken.load(Ordering::Relaxed) + WINDOW {
            if end.load(Ordering::Relaxed) {
                return;
            }
            thread::yield_now();
        }
        frame[14..22].copy_from_slice(&number.to_be_bytes());
        let len = [60, 100, longest][number as usize % 3];
        socket.send(&frame[..len]).expect("the interface takes it");
    }
}

/// Takes the frames that come, while another socket is opened in front again and again.
fn take_all(recipe: &Recipe, mut intake: Intake, taken: &AtomicU64) {
    let (clock, mut expected) = (Clock::new(), 0_u64);
    for change in 0..CHANGES {
        let _other = listening(recipe);
        intake.schedule.hurries();
        let mut begun = false;
        until("the front", || {
            intake.next(|frame, _, _| {
                let number = u64::from_be_bytes(*frame[14..].first_chunk().expect("a number"));
                assert_eq!(number, expected, "change {change}");
                expected += 1;
            });
            taken.store(expected, Ordering::Relaxed);
            intake.go_on(clock.now());
            begun |= matches!(intake.stage, Stage::Overlap { .. });
            (begun && matches!(intake.stage, Stage::Idle)).then_some(())
        });
        let standing = socket_order::place_of(intake.socket(), recipe.index, PROTOCOL);
        assert_eq!(
            standing.expect("it is of this namespace"),
            SocketPlace::First,
            "change {change}"
        );
    }
    assert_eq!(intake.overrun(), 0);
    assert!(expected > WINDOW * CHANGES as u64, "{expected} frames went around the changes");
}

/// Ends the sender, also when a test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn every_frame_comes_once(lab: &Lab, runs: bool, longest: usize) {
    lab.cable("a0", "b0", 9000).unwrap();
    let socket = PacketSocket::open(false).expect("a socket");
    let near = recipe("a0", false);
    socket.bind(near.index, EtherType(0)).expect("the interface is there");
    let far = lab.far.within(|| recipe("b0", runs));
    let Interface { mac: to, .. } = lab.far.within(|| Interface::named("b0")).expect("it is there");
    let intake = lab.far.within(|| Intake::open(far.clone())).expect("an intake");
    let (taken, end) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| send_all(&socket, to, longest, &taken, &end));
        let _end = End(&end);
        lab.far.within(|| take_all(&far, intake, &taken));
    });
}

#[test]
fn on_the_way_to_the_front_every_packet_comes_once_and_in_its_order() {
    lab::test(|lab| every_frame_comes_once(lab, false, 4000));
}

/// Runs of 9000 bytes are too long for the slots of the ring.
#[test]
fn on_the_way_to_the_front_every_run_comes_once_and_in_its_order() {
    lab::test(|lab| every_frame_comes_once(lab, true, 9000));
}
