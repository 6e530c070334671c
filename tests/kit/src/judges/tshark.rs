//! The judge tshark, which dissects frames, and reports what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::{Judge, Scratch, run};

/// The program tshark as a judge.
pub const TSHARK: Judge =
    Judge { name: "tshark", install: "apt-get install tshark", probe: &["tshark", "--version"] };

const LAYERS: &str = "frame.protocols";
const MALFORMED: &str = "_ws.malformed";
const SEVERITY: &str = "_ws.expert.severity";
const COMPLAINT: &str = "_ws.expert.message";

/// The fields of tshark about a frame as a whole, to [ask](dissect) for and to [judge
/// by](complaints).
pub const ABOUT: [&str; 4] = [LAYERS, MALFORMED, SEVERITY, COMPLAINT];

/// The dissector tables by which tshark guesses what the payload of an InfiniBand packet is.
/// Payloads of tests are noise, which now and then looks like the beginning of another protocol,
/// and then counts as malformed.
const GUESSED_AT: &str = "infiniband.";

/// Has tshark read a capture, of which it must dissect each frame up to InfiniBand without a
/// complaint. Returns the number of frames of each opcode.
///
/// # Panics
/// When tshark complains about a frame.
pub fn check_capture(capture: &Path, scratch: &Scratch) -> BTreeMap<String, usize> {
    const OPCODE: &str = "infiniband.bth.opcode";
    let columns: Vec<_> = ABOUT.into_iter().chain([OPCODE]).collect();
    let (mut found, mut all) = (BTreeMap::new(), Vec::new());
    for (number, line) in (1..).zip(dissect(capture, &columns, scratch)) {
        let shown: Vec<_> = columns.iter().copied().zip(line.split('\t')).collect();
        let Some(&(_, opcode)) = shown.get(ABOUT.len()) else { panic!("{line:?}") };
        *found.entry(opcode.to_owned()).or_default() += 1;
        for complaint in complaints(&shown) {
            all.push(format!("frame {number}: {complaint}"));
        }
    }
    let (count, all) = (all.len(), all.join("\n"));
    assert!(all.is_empty(), "tshark disagrees in {count} places:\n{all}");
    found
}

/// The complaints of tshark about a frame, of which `shown` has the fields [about the frame](ABOUT)
/// and their values.
pub fn complaints(shown: &[(&str, &str)]) -> Vec<String> {
    let said = shown.iter().find(|(column, _)| *column == COMPLAINT).map_or("", |(_, text)| text);
    let mut complaints = Vec::new();
    for &(column, text) in shown {
        match column {
            LAYERS if !text.split(':').any(|layer| layer == "infiniband") => {
                complaints.push(format!("it is taken apart to {text}, and no further"));
            }
            MALFORMED if !text.is_empty() => complaints.push(format!("it is malformed: {text}")),
            // The severity decides whether a message is a complaint.
            SEVERITY if !text.split(',').filter(|one| !one.is_empty()).all(is_mere_note) => {
                complaints.push(format!("it complains ({text}): {said}"));
            }
            _ => {}
        }
    }
    complaints
}

/// Returns whether the severity is less than that of a warning.
fn is_mere_note(severity: &str) -> bool {
    const WARNING: u32 = 0x60_0000;
    severity.parse().is_ok_and(|severity: u32| severity < WARNING)
}

/// The values that tshark reads in these fields of each frame of a capture, with tabs between them.
pub fn dissect(capture: &Path, columns: &[&str], scratch: &Scratch) -> Vec<String> {
    let mut command = tshark(scratch);
    for guesser in guessers(scratch) {
        match &guesser[..] {
            // This dissector is needed for frames as well, so only its guessing is switched off.
            "ethertype" => command.args(["--disable-heuristic", "eth_over_ib"]),
            guesser => command.args(["--disable-protocol", guesser]),
        };
    }
    for preference in [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        // IPv6 demands a UDP checksum, except for tunnels that agree to do without (RFC 6935). RoCE
        // is such a case: the ICRC covers more, and the kernel's frames have no checksum either.
        "udp.ignore_ipv6_zero_checksum:TRUE",
    ] {
        command.args(["-o", preference]);
    }
    command.args(["-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    for column in columns {
        command.args(["-e", column]);
    }
    run(command.arg("-r").arg(capture))
}

/// The command tshark without the user's configuration.
pub fn tshark(scratch: &Scratch) -> Command {
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", scratch.path());
    command
}

/// The names of the dissectors that guess.
fn guessers(scratch: &Scratch) -> BTreeSet<String> {
    let lines = run(tshark(scratch).args(["-G", "heuristic-decodes"]));
    let guessers = lines.iter().filter(|line| line.starts_with(GUESSED_AT));
    guessers.filter_map(|line| line.split('\t').nth(1)).map(str::to_owned).collect()
}
