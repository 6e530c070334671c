//! Real processes: this binary runs itself, and kills what it ran.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use doorbell_core::encap::PathId;
use doorbell_core::nic::Outbox;
use doorbell_transports::shm::Shm;
use doorbell_transports::{Address, Device};

use crate::shm::common::*;

const ROLE: &str = "DOORBELL_SHM_ROLE";
const PEER: &str = "DOORBELL_SHM_PEER";

/// What a process does that another test started: nothing, if none did.
#[test]
fn a_process_that_another_test_starts() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let peer: Address = std::env::var(PEER).expect("a peer").parse().expect("an address");
    let mut device = Shm::join(&name(&role)).expect("a name");
    let link = reach_with(&mut device, &peer, || {}).expect("a link");
    match &*role {
        "echo" => echo(&mut device, link),
        "flood" => flood(&mut device, link),
        "count" => crate::shm::grants::count(&mut device, link),
        _ => panic!("no such role: {role}"),
    }
}

/// Starts this binary in a role; what it prints is passed over.
pub fn start(role: &str, peer: &Address) -> Child {
    let binary = std::env::current_exe().expect("a path");
    Command::new(binary)
        .args(["--exact", "shm::processes::a_process_that_another_test_starts", "--nocapture"])
        .env(ROLE, role)
        .env(PEER, peer.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Ends as its own tests say.
pub fn finish(mut child: Child) {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let said: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(child.wait().expect("an end").success(), "{said:#?}");
}

/// Returns each packet, polling for some and asleep for others, until the peer leaves.
fn echo(device: &mut Shm, link: PathId) {
    let mut heard = Heard::default();
    while heard.gone.is_empty() {
        device.arm(None).expect("armed");
        if turn(device, &mut heard) == 0 && heard.gone.is_empty() {
            sleep(device);
        }
        device.disarm();
        for (from, number, payload) in heard.packets.drain(..) {
            assert_eq!(from, link);
            send(device, link, number, &payload);
        }
    }
}

/// Writes as fast as it can, until it is killed.
fn flood(device: &mut Shm, link: PathId) {
    let (mut number, mut heard) = (0, Heard::default());
    loop {
        let payload = [number as u8; 1500];
        if push(device, link, number, &payload[..number as usize % 1500]).is_ok() {
            number = (number + 1) % (1 << 24);
        }
        device.flush();
        turn(device, &mut heard);
        assert!(heard.gone.is_empty(), "the test has ended without killing this process");
    }
}

/// The link by which a process that was started calls.
fn called(device: &mut Shm, heard: &mut Heard) -> PathId {
    until(|| turn(device, heard) > 0);
    heard.packets[0].0
}

#[test]
fn two_processes_exchange_packets_and_the_one_that_stays_hears_of_the_end() {
    let mut device = Shm::join(&name("parent")).expect("a name");
    let child = start("echo", device.address());
    let mut heard = Heard::default();
    let peer = Address::Shm(format!("test/{}/0/echo", child.id()).into());
    let mut link = None;
    until(|| {
        turn(&mut device, &mut heard);
        link = device.reach(&peer).ok().flatten();
        link.is_some()
    });
    let link = reach_with(&mut device, &peer, || {}).expect("a link");
    for number in 0..2000 {
        let payload = vec![number as u8; number as usize * 2];
        send(&mut device, link, number, &payload);
        until(|| turn(&mut device, &mut heard) > 0);
        assert_eq!(heard.packets.pop(), Some((link, number, payload)));
    }
    drop(device);
    finish(child);
}

#[test]
fn a_peer_killed_in_the_middle_of_writing_is_read_to_its_last_whole_packet_and_gone() {
    let mut device = Shm::join(&name("survivor")).expect("a name");
    for round in 0..10 {
        let mut child = start("flood", device.address());
        let mut heard = Heard::default();
        let link = called(&mut device, &mut heard);
        until(|| {
            turn(&mut device, &mut heard);
            heard.packets.len() > 1000 * (round + 1)
        });
        child.kill().expect("killed");
        child.wait().expect("an end");
        until(|| {
            turn(&mut device, &mut heard);
            !heard.gone.is_empty()
        });
        assert_eq!((heard.gone, heard.malformed), (vec![link], 0));
        for (at, (_, number, payload)) in heard.packets.iter().enumerate() {
            assert_eq!(*number as usize, at);
            assert_eq!(payload, &vec![at as u8; at % 1500]);
        }
    }
    assert_eq!(device.statistics().broken, 0);
}

#[test]
fn a_sleeper_is_woken_when_its_peer_is_killed() {
    let mut device = Shm::join(&name("sleeper")).expect("a name");
    let mut child = start("flood", device.address());
    let mut heard = Heard::default();
    let link = called(&mut device, &mut heard);
    child.kill().expect("killed");
    child.wait().expect("an end");
    let start = std::time::Instant::now();
    while heard.gone.is_empty() {
        assert!(start.elapsed() < PATIENCE, "it hangs");
        device.arm(None).expect("armed");
        if turn(&mut device, &mut heard) == 0 && heard.gone.is_empty() {
            sleep(&device);
        }
        device.disarm();
    }
    assert_eq!(heard.gone, [link]);
}
