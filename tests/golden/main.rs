//! What the Linux kernel's software RoCE was recorded to say, ours says as well.
//!
//! A NIC of ours takes the place of either end of every reliable connection in `tests/captures`.
//! It is told what the other end said, and posts what the recorded program must have posted, which
//! the capture shows; then what it sent is compared with what the recorded end did, packet by
//! packet, and what it told its program with what the packets say.

mod comparison;
mod memory;
mod recording;
mod stand_in;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use doorbell::nic::{Bug, plant};

use comparison::{Tally, compare};
use memory::BadKey;
use recording::{Exchange, exchanges};
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let entries = std::fs::read_dir(folder).expect("the captures are there");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "pcap")).collect();
    paths.sort();
    paths
}

/// What a capture holds of reliable connections.
fn recorded(path: &Path) -> Vec<Exchange> {
    exchanges(&std::fs::read(path).expect("the capture can be read"))
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
    let (mut captured, mut opcodes) = (0, BTreeSet::new());
    for path in captures() {
        let name = path.file_name().expect("a file").display();
        let exchanges = recorded(&path);
        if exchanges.is_empty() {
            report(&format!("{name}: no reliable connection"));
            continue;
        }
        captured += 1;
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
            assert!(requests > 0 && answers > 0, "{name}: {tally:?}");
            // Each packet is either end's, and none is left out.
            assert_eq!(requests + answers + passed_over, packets.len(), "{name}: {tally:?}");
        }
        let (connections, Tally { requests, answers, recognised, .. }) =
            (exchanges.len(), tallies[0]);
        report(&format!(
            "{name}: of {connections} reliable connection(s), {requests} packets compared as the \
             requester, {answers} as the responder; {recognised} bytes that were read known from \
             packets before"
        ));
    }
    // What the folder holds is known, so a reader that overlooks connections is found out.
    assert_eq!(captured, 8, "captures with a reliable connection");
    assert!(opcodes.into_iter().eq(0..=0x14), "every opcode of the reliable connection");
}

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
        plant(Some(bug));
        let differs = |path: &PathBuf| {
            let exchanges = recorded(path);
            readings().into_iter().any(|reading| replay(&exchanges, reading).is_err())
        };
        let found = captures().iter().any(differs);
        plant(None);
        assert!(found, "{bug:?} is not found");
    }
}

/// Tells even when the test passes: the harness would keep `println!` to itself.
fn report(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error is open");
}
