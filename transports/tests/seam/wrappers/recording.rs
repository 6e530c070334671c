//! What was recorded, tshark opens.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use doorbell_transports::Device;
use doorbell_transports::shm::Shm;
use doorbell_transports::wrap::Recorder;

use crate::wrappers::in_memory::InMemory;
use crate::wrappers::nics::exchange;

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("doorbell-{}-{name}.pcapng", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it was not made, there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is asked of each frame.
const FIELDS: [&str; 5] = [
    "frame.protocols",
    "_ws.malformed",
    "frame.packet_flags_direction",
    "frame.interface_name",
    "infiniband.bth.opcode",
];

/// The fields of each frame, or nothing where tshark is not installed, which is said aloud.
fn dissect(capture: &Path) -> Option<Vec<Vec<String>>> {
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let mut tshark = Command::new("tshark");
    // What the payload might be is guessed, and is not to be judged.
    tshark.args(["--disable-heuristic", "eth_over_ib", "--disable-protocol", "rpcordma"]);
    tshark.args(["-T", "fields", "-r"]).arg(capture);
    let output = match tshark.args(fields).output() {
        Ok(output) => output,
        Err(why) => {
            let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!integration, "tshark: {why}: `apt-get install tshark`");
            eprintln!("PASSED OVER: tshark: {why}: `apt-get install tshark`");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| line.split('\t').map(str::to_owned).collect();
    Some(text.lines().map(line).collect())
}

/// Records an exchange at the end that receives, and has tshark judge it.
fn judge<D: Device>(one: D, other: D, name: &str) {
    let (scratch, address) = (Scratch::new(name), other.address().to_string());
    let file = BufWriter::new(File::create(&scratch.0).expect("a file"));
    let other = Recorder::new(other, file).expect("room on the disk");
    let (_, other) = exchange(one, other, 100);
    other.finish().expect("room on the disk");

    let Some(frames) = dissect(&scratch.0) else { return };
    for frame in &frames {
        assert!(frame[0].contains("infiniband"), "{frame:?}");
        assert_eq!((&*frame[1], &frame[3]), ("", &address), "{frame:?}");
        // Sends come in, and acknowledgements go out.
        let outbound = frame[4] == "17";
        let direction: u32 = frame[2].trim_start_matches("0x").parse().expect("a number");
        assert_eq!(direction, if outbound { 2 } else { 1 }, "{frame:?}");
    }
    assert!(frames.len() >= 100, "{} frames", frames.len());
}

#[test]
fn both_directions_of_a_network_are_recorded() {
    let (one, other) = InMemory::pair().expect("two sockets");
    judge(one, other, "network");
}

#[test]
fn what_goes_by_a_link_is_recorded_in_headers_that_are_made_up() {
    let [one, other] = Shm::pair().expect("a pair");
    judge(one, other, "link");
}
