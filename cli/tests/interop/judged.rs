//! Every frame that we sent, as it was before any harm, judged by tshark and scapy.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use doorbell_core::pcap::Reader;
use doorbell_kit::judges::scapy::{self, SCAPY};
use doorbell_kit::judges::tshark::{TSHARK, check_capture, tshark};
use doorbell_kit::judges::{Scratch, run};

/// How many frames were judged.
#[derive(Default)]
pub struct Judged {
    opcodes: BTreeMap<String, usize>,
    ipv4: usize,
    ipv6: usize,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opcodes, ipv4, ipv6 } = self;
        let count: usize = opcodes.values().sum();
        write!(
            f,
            "{count} frames of ours of {} opcodes were judged by tshark, the ICRC of {ipv4} over IPv4 and {ipv6} \
             over IPv6 by scapy",
            opcodes.len()
        )
    }
}

/// Judges what we sent in a capture of `all`.
///
/// # Panics
/// When a judge has something to say against a frame of ours, or either side sent what is neither
/// RoCE nor known.
pub fn judge(all: &Path, sent: u64, scratch: &Scratch) -> Judged {
    if !TSHARK.is_here() || !SCAPY.is_here() {
        return Judged::default();
    }
    let others = run(tshark(scratch).args(["-n", "-Y", OTHERS, "-r"]).arg(all));
    assert!(others.is_empty(), "neither RoCE nor what kernels say to each other: {others:#?}");
    let roce = ours(all, scratch);
    let file = std::fs::read(&roce).expect("it can be read");
    let records = Reader::new(&file).expect("a capture");
    let frames: Vec<_> = records.map(|record| record.expect("a record").data).collect();
    assert_eq!(frames.len() as u64, sent, "as many are judged as the link has seen of us");
    let scapy = scapy::check(frames.iter().copied(), scratch);
    assert!(scapy.ipv4 > 0 && scapy.ipv6 > 0, "there is nothing to judge: {scapy:?}");
    assert_eq!(scapy.ipv4 + scapy.ipv6, frames.len(), "frames that scapy takes for none of RoCE");
    Judged { opcodes: check_capture(&roce, scratch), ipv4: scapy.ipv4, ipv6: scapy.ipv6 }
}

/// RoCE that left our end of the cable.
const OURS: &str = "frame.packet_flags_direction == 2 && udp.dstport == 4791 && udp.length > 8 \
                    && !icmp && !icmpv6";

/// The filter for packets that are neither RoCE, nor empty datagrams, nor packets that find
/// neighbours and exchange addresses, nor what a host says of a datagram for a program that has
/// just ended, which quotes the port.
const OTHERS: &str =
    "!(udp.dstport == 4791) && !arp && !tcp && !igmp && !(icmpv6.type in {133 .. 143})";

/// A capture of those frames of another that are RoCE of ours. What is left out is not: a UDP
/// datagram without contents, by which `udp` learns how the kernel numbers what it sends, and which
/// every receiver drops.
fn ours(capture: &Path, scratch: &Scratch) -> PathBuf {
    let roce = capture.with_extension("pcap");
    let mut tshark = tshark(scratch);
    tshark.args(["-n", "-Y", OURS, "-F", "nsecpcap", "-r"]).arg(capture);
    run(tshark.arg("-w").arg(&roce));
    roce
}
