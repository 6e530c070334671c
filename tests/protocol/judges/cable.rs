//! What raw devices send, captured on a real cable by Wireshark's own program.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use doorbell_core::nic::{Numbering, Outbox};
use doorbell_core::pcap::Reader;
use doorbell_core::wire::{Bth, Extensions, Headers, Opcode, Psn, Qpn};
use doorbell_kit::lab::{Lab, Namespace};
use doorbell_kit::reach;
use doorbell_transports::{Device, Spec};

use doorbell_kit::judges::Scratch;

/// A capture under way, which ends by itself after so many frames.
struct Capture {
    process: Child,
    file: PathBuf,
}

impl Capture {
    fn start(namespace: &Namespace, interface: &str, frames: usize, scratch: &Scratch) -> Self {
        let file = scratch.path().join(format!("{interface}.pcap"));
        let mut command = namespace.command("dumpcap");
        // The classic format, whole frames, and of RoCE only.
        command.args(["-P", "-q", "-i", interface, "-f", "udp port 4791 or ether proto 0x8915"]);
        command.arg("-c").arg(frames.to_string()).arg("-w").arg(&file);
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it comes with tshark");
        // It names the file when it has begun.
        let said = BufReader::new(process.stderr.as_mut().expect("it is piped"));
        let begun = said.lines().any(|line| line.expect("text").starts_with("File:"));
        assert!(begun, "dumpcap ended: {:?}", process.wait());
        Self { process, file }
    }

    fn end(mut self) -> PathBuf {
        assert!(self.process.wait().expect("a child").success());
        self.file
    }
}

/// Packets of which kinds are sent: of so many bytes, so many at once.
const SENT: [(usize, u32); 8] =
    [(0, 1), (1, 1), (8, 1), (61, 3), (64, 128), (1024, 40), (1023, 5), (1, 130)];

/// Sends packets of all kinds by a device, `near` on `a0` and `far` on `b0`; returns the capture
/// and how many packets are in it. The interface cuts, so every packet is a frame on the cable.
pub fn traffic(lab: &Lab, near: &str, far: &str, scratch: &Scratch) -> (PathBuf, usize) {
    let open = |spec: &str| {
        let spec: Spec = spec.parse().expect("a device");
        spec.open(Numbering::default()).expect("the interface is there")
    };
    let (mut near, mut far) = (open(near), lab.far.within(|| open(far)));
    let path = reach(&mut near, &mut far);
    let count = SENT.iter().map(|&(_, count)| count as usize).sum();
    let capture = Capture::start(&lab.far, "b0", count, scratch);
    for (len, count) in SENT {
        for number in 0..count {
            let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(0x4_0055), Psn::new(number));
            let headers = Headers { bth, extensions: Extensions::None };
            near.push(&path, headers, &vec![number as u8; len][..]).expect("there is room");
        }
        near.flush();
    }
    assert_eq!(near.statistics().refused, 0);
    (capture.end(), count)
}

/// The frames of a capture.
pub fn frames(capture: &PathBuf) -> Vec<Vec<u8>> {
    let file = std::fs::read(capture).expect("the capture can be read");
    let records = Reader::new(&file).expect("a capture");
    records.map(|record| record.expect("a record").data.to_vec()).collect()
}
