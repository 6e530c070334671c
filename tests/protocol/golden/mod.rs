//! What the Linux kernel's software RoCE was recorded to say, ours says as well.
//!
//! A NIC of ours takes the place of either end of every exchange in `tests/captures`, of whichever
//! service. It is told what the other end said, and posts what the recorded program must have
//! posted, which the capture shows; then what it sent is compared with what the recorded end did,
//! frame by frame, and what it told its program with what the packets say. Where the making and
//! ending of a connection was recorded, our connection manager stands beside the NIC.

mod comparison;
mod managed;
mod memory;
mod recording;
mod stand_in;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use doorbell_core::cm::{self, ConnectionManager};
use doorbell_core::encap::Opener;
use doorbell_core::nic::{Config, Nic, Seed, receive_frame};
use doorbell_core::wire::cm::{Mad, Message};
use doorbell_core::wire::{CaGuid, Service};

use comparison::{Tally, compare};
use memory::BadKey;
use recording::{Capture, Exchange};
use stand_in::{BadReceive, Reading, Turns};

/// All that the recorded programs may have done, and that ours may do.
fn readings() -> Vec<Reading> {
    let mut readings = Vec::new();
    for turns in [Turns::EachPacket, Turns::EachBurst] {
        for bad_receive in [BadReceive::TooShort, BadReceive::Revoked] {
            for bad_key in [BadKey::IsNone, BadKey::IsAnothers, BadKey::LacksTheRight] {
                readings.push(Reading { bad_key, bad_receive, turns });
            }
        }
    }
    readings
}

fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let entries = std::fs::read_dir(folder).expect("the captures are there");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "pcap")).collect();
    paths.sort();
    paths
}

fn recorded(path: &Path) -> Capture {
    Capture::read(&std::fs::read(path).expect("the capture can be read"))
}

/// Has a NIC of ours stand in for either end of each.
fn replay(exchanges: &[Exchange], reading: Reading) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for exchange in exchanges {
        for end in [0, 1] {
            tally += compare(exchanges, exchange, end, reading)
                .map_err(|why| format!("for {:?}, {reading:?}: {why}", exchange.ends[end]))?;
        }
    }
    Ok(tally)
}

#[test]
fn a_nic_of_ours_says_what_the_recorded_one_did() {
    let (mut captured, mut found, mut left) = ([0; 3], 0, 0);
    let mut opcodes = BTreeSet::new();
    for path in captures() {
        let name = path.file_name().expect("a file").display();
        let Capture { mut exchanges, management } = recorded(&path);
        found += exchanges.iter().map(|exchange| exchange.packets.len()).sum::<usize>();
        left += management.len();
        // `rping`'s is gone through below.
        exchanges.retain(|exchange| exchange.transaction.is_none());
        if exchanges.is_empty() {
            continue;
        }
        let of = |service| exchanges.iter().filter(|exchange| exchange.service == service).count();
        let services = [Service::Rc, Service::Uc, Service::Ud].map(of);
        let packets: Vec<_> = exchanges.iter().flat_map(|exchange| &exchange.packets).collect();
        opcodes.extend(packets.iter().map(|packet| packet.headers.bth.opcode().code()));
        let tallies: Vec<Tally> = readings()
            .into_iter()
            .map(|reading| {
                replay(&exchanges, reading).unwrap_or_else(|why| panic!("{name}, {why}"))
            })
            .collect();
        for tally in &tallies {
            let Tally { requests, answers, passed_over, .. } = *tally;
            // Each packet is either end's, and none is left out.
            assert_eq!(answers > 0, services[0] > 0, "{name}: {tally:?}");
            assert_eq!(requests + answers + passed_over, packets.len(), "{name}: {tally:?}");
        }
        let Tally { requests, answers, recognised, .. } = tallies[0];
        report(&format!(
            "{name}: of {services:?} exchange(s) of RC, UC and UD, {requests} packets compared as \
             the requester, {answers} as the responder; {recognised} bytes that were read known \
             from packets before"
        ));
        for (captured, service) in captured.iter_mut().zip(services) {
            *captured += usize::from(service > 0);
        }
    }
    // What the folder holds is known, so a reader that overlooks exchanges is found out.
    assert_eq!(captured, [7, 1, 2], "captures with an exchange of RC, UC and UD");
    assert_eq!((found, left), (279, 2), "frames of RoCE, and those of no exchange");
    let expected = (0..=0x14).chain([0x20, 0x21, 0x22, 0x64, 0x65]);
    assert!(opcodes.into_iter().eq(expected), "every opcode of RC; sends of the others");
}

/// REQ, REP and RTU, data in both directions, DREQ and DREP: one NIC of ours with its manager as
/// the client that asks and leaves, and one as the server.
#[test]
fn rpings_whole_exchange_gives_the_recorded_answers_from_either_side() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let Capture { exchanges, management } = recorded(&folder.join("rping.pcap"));
    assert_eq!((exchanges.len(), management.len()), (1, 0));
    let [first, .., last] = &exchanges[0].packets[..] else { panic!() };
    assert_eq!((first.number, last.number), (1, 29), "the whole capture");
    for reading in readings() {
        let Tally { management, requests, answers, passed_over, .. } =
            replay(&exchanges, reading).unwrap_or_else(|why| panic!("rping.pcap, {why}"));
        assert_eq!((management, requests, answers, passed_over), (5, 12, 12, 0));
    }
    report(
        "rping.pcap: 5 management datagrams, 12 packets of the requester and 12 of the responder \
         compared",
    );
}

/// Which queue pair serves datagrams is asked and told by messages that ours does not speak. They
/// reach its manager, who says nothing to them.
#[test]
fn questions_for_services_of_datagrams_are_passed_over() {
    let mut passed_over = 0;
    for datagram in captures().iter().flat_map(|path| recorded(path).management) {
        let Mad { message, .. } = Mad::parse(&datagram.payload).expect("a kernel's datagram");
        assert!(matches!(message, Message::SidrReq(_) | Message::SidrRep(_)), "{message:?}");
        let (config, seed) = (cm::Config::new(CaGuid(1)), || Seed::from_number(1));
        let mut nic = Nic::new(Config::default(), seed()).unwrap();
        let mut manager = ConnectionManager::new(config, seed()).unwrap();
        receive_frame(&mut nic, &mut Opener::default(), &datagram.frame, None);
        let arrived = nic.management().expect("it is for the manager");
        assert_eq!(arrived.bytes[..], datagram.payload);
        manager.receive(&arrived.way, &arrived.bytes);
        assert_eq!((manager.counters().received, manager.counters().stray), (1, 1));
        assert_eq!((manager.transmit(), manager.event()), (None, None));
        passed_over += 1;
    }
    assert_eq!(passed_over, 2, "udaddy's question and its answer");
}

/// Tells even when the test passes: the harness would keep `println!` to itself.
fn report(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error is open");
}

/// A comparison that finds nothing may be blind: bugs that it must find.
#[cfg(feature = "planted-bugs")]
mod planted {
    use doorbell_core::{Bug, plant};

    use super::*;

    /// Or the comparison might be blind. Of the other bugs, a capture without a loss shows nothing.
    #[test]
    fn a_nic_with_a_bug_says_something_else() {
        let bugs = [
            Bug::GoesBackToTheNewest,
            Bug::OffByOneBounds,
            Bug::IgnoresDomains,
            Bug::ComparesNoKeys,
            Bug::DropsWithoutReceive,
            Bug::MisplacesTheLastPacket,
            Bug::AcknowledgesAhead,
            Bug::MisplacesAnswers,
        ];
        for bug in bugs {
            let _planted = plant(bug);
            let differs = |path: &PathBuf| {
                let Capture { exchanges, .. } = recorded(path);
                readings().into_iter().any(|reading| replay(&exchanges, reading).is_err())
            };
            assert!(captures().iter().any(differs), "{bug:?} is not found");
        }
    }
}
