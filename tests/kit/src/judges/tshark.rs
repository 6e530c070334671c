//! tshark: takes frames apart, and says what it thinks of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::{Judge, Scratch, run};

/// The program.
pub const TSHARK: Judge =
    Judge { name: "tshark", install: "apt-get install tshark", probe: &["tshark", "--version"] };

const LAYERS: &str = "frame.protocols";
const MALFORMED: &str = "_ws.malformed";
const SEVERITY: &str = "_ws.expert.severity";
const COMPLAINT: &str = "_ws.expert.message";

/// What tshark says about a frame as a whole: fields to [ask](dissect) for, and to
/// [judge by](complaints).
pub const ABOUT: [&str; 4] = [LAYERS, MALFORMED, SEVERITY, COMPLAINT];

/// The places in an InfiniBand packet where dissectors guess what the payload might be. Ours is
/// noise, and would now and then be taken for the beginning of something, which is then malformed.
const GUESSED_AT: &str = "infiniband.";

/// Has tshark read a capture, of which it must take every frame apart to InfiniBand without a
/// complaint. Gives how many there are of each opcode.
///
/// # Panics
/// When it complains.
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

/// What tshark has to say against a frame in which `shown` was read, by what it says
/// [about it](ABOUT).
pub fn complaints(shown: &[(&str, &str)]) -> Vec<String> {
    let said = shown.iter().find(|(column, _)| *column == COMPLAINT).map_or("", |(_, text)| text);
    let mut complaints = Vec::new();
    for &(column, text) in shown {
        match column {
            LAYERS if !text.split(':').any(|layer| layer == "infiniband") => {
                complaints.push(format!("it is taken apart to {text}, and no further"));
            }
            MALFORMED if !text.is_empty() => complaints.push(format!("it is malformed: {text}")),
            // The severity decides.
            SEVERITY if !text.split(',').filter(|one| !one.is_empty()).all(is_mere_note) => {
                complaints.push(format!("it complains ({text}): {said}"));
            }
            _ => {}
        }
    }
    complaints
}

/// Whether the severity is less than a warning's.
fn is_mere_note(severity: &str) -> bool {
    const WARNING: u32 = 0x60_0000;
    severity.parse().is_ok_and(|severity: u32| severity < WARNING)
}

/// What tshark reads of each frame of a capture in these fields, with tabs between.
pub fn dissect(capture: &Path, columns: &[&str], scratch: &Scratch) -> Vec<String> {
    let mut command = tshark(scratch);
    for guesser in guessers(scratch) {
        match &guesser[..] {
            // It guesses, but frames are read with it as well: only the guessing is put away.
            "ethertype" => command.args(["--disable-heuristic", "eth_over_ib"]),
            guesser => command.args(["--disable-protocol", guesser]),
        };
    }
    for preference in [
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        // IPv6 asks for a checksum, but for tunnels that agree to do without (RFC 6935). RoCE is
        // such a case: the ICRC says more, and the kernel's frames have none either.
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

/// tshark without what its user may have configured.
pub fn tshark(scratch: &Scratch) -> Command {
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", scratch.path());
    command
}

/// The dissectors that guess.
fn guessers(scratch: &Scratch) -> BTreeSet<String> {
    let lines = run(tshark(scratch).args(["-G", "heuristic-decodes"]));
    let guessers = lines.iter().filter(|line| line.starts_with(GUESSED_AT));
    guessers.filter_map(|line| line.split('\t').nth(1)).map(str::to_owned).collect()
}
