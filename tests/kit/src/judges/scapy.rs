//! The judge scapy, which computes the ICRC of RoCE v2 over IPv4 and IPv6, and does not know RoCE
//! v1.

use std::path::Path;
use std::process::Command;

use doorbell_core::encap::{ICRC_LEN, Outer, Version};

use super::{Judge, Scratch, run};

/// The Python package scapy as a judge.
pub const SCAPY: Judge = Judge {
    name: "scapy",
    install: "pip install scapy",
    probe: &["python3", "-c", "import scapy.contrib.roce"],
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/judges/icrc.py");

/// The number of frames whose ICRC scapy has computed, by their IP version.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Judged {
    /// The number of frames over IPv4.
    pub ipv4: usize,
    /// The number of frames over IPv6.
    pub ipv6: usize,
}

/// Compares the ICRC of every frame of RoCE v2 with scapy's.
///
/// # Panics
/// When an ICRC differs.
pub fn check<'a>(frames: impl Iterator<Item = &'a [u8]> + Clone, scratch: &Scratch) -> Judged {
    let computed = icrcs(&scratch.capture(frames.clone()));
    assert_eq!(computed.len(), frames.clone().count(), "scapy gives a line for each frame");
    let mut judged = Judged::default();
    for (index, (frame, computed)) in frames.zip(computed).enumerate() {
        let (outer, transport) = match Outer::parse(frame) {
            Ok((outer, transport)) if outer.version() != Version::V1 => (outer, transport),
            _ => {
                assert_eq!(computed, None, "frame {index} is not RoCE v2");
                continue;
            }
        };
        let found: [u8; ICRC_LEN] = *transport.last_chunk().expect("a packet has an ICRC");
        assert_eq!(computed, Some(found), "frame {index}, left is scapy's: {outer:x?}");
        match outer.version() {
            Version::V2Ipv6 => judged.ipv6 += 1,
            _ => judged.ipv4 += 1,
        }
    }
    judged
}

/// The ICRC that scapy computes for each frame of a capture; `None` for a frame that is not RoCE
/// v2.
fn icrcs(capture: &Path) -> Vec<Option<[u8; ICRC_LEN]>> {
    let lines = run(Command::new("python3").arg(SCRIPT).arg(capture));
    let parse = |line: &String| match &line[..] {
        "-" => None,
        digits => Some(u32::from_str_radix(digits, 16).expect("an ICRC").to_be_bytes()),
    };
    lines.iter().map(parse).collect()
}
