//! Programs that have nothing to do with us judge the frames that we build.
//!
//! tshark takes them apart: what it reads must be what was put in, field by field, and it must
//! have nothing to complain of. It shows the ICRC but does not check it; scapy computes it, for
//! RoCE v2 over IPv4 and over IPv6. Nobody here judges the ICRC of RoCE v1.
//!
//! A judge that is not installed is named on standard error, with the way to install it, and its
//! tests pass without it; where the variable `CI` is set, they fail.

mod cable;
mod fabric;
mod frames;
mod management;
mod reading;
mod segments;
mod tshark;

use std::collections::BTreeMap;

use doorbell_core::encap::{Opener, Version};
use doorbell_core::pcap::Reader;
use doorbell_core::wire::Packet;
use doorbell_kit::judges::scapy::{self, Judged, SCAPY};
use doorbell_kit::judges::tshark::{TSHARK, check_capture};
use doorbell_kit::judges::{Scratch, report};
use doorbell_kit::lab;

use frames::{Frame, every_message, every_opcode};
use segments::{Laid, runs};

/// Every frame that we build of one packet.
fn alone() -> Vec<Frame> {
    every_opcode().into_iter().chain(every_message()).collect()
}

fn bytes(frames: &[Frame]) -> impl Iterator<Item = &[u8]> + Clone {
    frames.iter().map(|frame| &frame.bytes[..])
}

fn count(frames: &[Frame], version: Version) -> usize {
    frames.iter().filter(|frame| frame.outer.version() == version).count()
}

/// All frames that the runs are cut into.
fn all_segments() -> Vec<Frame> {
    runs().into_iter().flat_map(|run| run.segments).collect()
}

#[test]
fn tshark_reads_in_every_frame_what_was_put_in() {
    if !TSHARK.is_here() {
        return;
    }
    let frames = alone();
    tshark::check(&frames, &Scratch::new());
    report(&format!(
        "tshark: {} frames judged, {} of them of RoCE v1, {} over IPv4, {} over IPv6",
        frames.len(),
        count(&frames, Version::V1),
        count(&frames, Version::V2Ipv4),
        count(&frames, Version::V2Ipv6),
    ));
}

#[test]
fn tshark_reads_what_a_run_is_cut_into() {
    if !TSHARK.is_here() {
        return;
    }
    let frames = all_segments();
    tshark::check(&frames, &Scratch::new());
    report(&format!("tshark: {} segments of runs judged", frames.len()));
}

#[test]
fn tshark_has_nothing_to_say_against_a_connection_with_every_kind_of_trouble() {
    if !TSHARK.is_here() {
        return;
    }
    for version in [Version::V1, Version::V2Ipv4, Version::V2Ipv6] {
        let scratch = Scratch::new();
        let capture = scratch.path().join("fabric.pcap");
        fabric::trouble(version, &capture);
        let found = check_capture(&capture, &scratch);
        // Sends and writes of one packet and of several, with and without immediates, and answers.
        let opcodes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17].map(|opcode| opcode.to_string());
        assert!(found.keys().eq(sorted(&opcodes)), "{version:?}: {found:?}");
        let count: usize = found.values().sum();
        report(&format!("tshark: {count} frames of a lossy connection judged, {version:?}"));
    }
}

fn sorted(names: &[String]) -> impl Iterator<Item = &String> {
    let mut names: Vec<_> = names.iter().collect();
    names.sort();
    names.into_iter()
}

#[test]
fn scapy_computes_the_icrc_of_every_frame_as_we_do() {
    if !SCAPY.is_here() {
        return;
    }
    let frames = alone();
    let judged = scapy::check(bytes(&frames), &Scratch::new());
    let (ipv4, ipv6) = (count(&frames, Version::V2Ipv4), count(&frames, Version::V2Ipv6));
    assert_eq!(judged, Judged { ipv4, ipv6 }, "scapy judges every frame of RoCE v2");
    report(&format!(
        "scapy: {ipv4} frames over IPv4 and {ipv6} over IPv6 judged; of the {} of RoCE v1 it has \
         no opinion",
        count(&frames, Version::V1),
    ));
}

#[test]
fn scapy_computes_the_icrc_of_what_a_run_is_cut_into_as_we_do() {
    if !SCAPY.is_here() {
        return;
    }
    let frames = all_segments();
    let judged = scapy::check(bytes(&frames), &Scratch::new());
    let (ipv4, ipv6) = (count(&frames, Version::V2Ipv4), count(&frames, Version::V2Ipv6));
    assert_eq!(judged, Judged { ipv4, ipv6 }, "scapy judges every segment");
    report(&format!("scapy: {ipv4} segments of runs over IPv4 and {ipv6} over IPv6 judged"));
}

/// The devices that send by AF_PACKET, on interfaces that cut what is to be cut.
#[test]
fn tshark_and_scapy_agree_with_what_raw_devices_put_on_a_cable() {
    if !TSHARK.is_here() || !SCAPY.is_here() {
        return;
    }
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        // What veth need not do it leaves to the receiver, who here would be a judge.
        for feature in ["tx-udp-segmentation", "tx-checksum-ip-generic"] {
            lab.near.offload("a0", feature, false).expect("veth can do without");
        }
        for (near, far) in [
            ("packet:a0", "packet:b0"),
            ("packet-v2:a0", "packet-v2:b0"),
            ("packet-v2:a0,10.219.0.101/24", "packet-v2:b0,10.219.0.102/24"),
        ] {
            let scratch = Scratch::new();
            let (capture, sent) = cable::traffic(lab, near, far, &scratch);
            let found = check_capture(&capture, &scratch);
            // Sends of one packet.
            assert_eq!(found, BTreeMap::from([("4".to_owned(), sent)]));
            let frames = cable::frames(&capture);
            let judged = scapy::check(frames.iter().map(|frame| &frame[..]), &scratch);
            let (ipv4, ipv6) = (judged.ipv4, judged.ipv6);
            assert_eq!(ipv4 + ipv6, if near.contains("v2") { sent } else { 0 });
            report(&format!(
                "a cable: {sent} frames of {near} judged by tshark, {ipv4} over IPv4 and {ipv6} \
                 over IPv6 by scapy"
            ));
        }
    });
}

/// Who judges the judge: the Linux kernel's software RoCE, which adapters understand.
#[test]
fn scapy_computes_the_icrc_of_every_recorded_frame_as_the_kernel_did() {
    if !SCAPY.is_here() {
        return;
    }
    let mut frames = Vec::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures");
    for entry in std::fs::read_dir(folder).expect("the folder of captures can be read") {
        let path = entry.expect("an entry of the folder").path();
        if path.extension().is_some_and(|extension| extension == "pcap") {
            let file = std::fs::read(&path).expect("the capture can be read");
            let records = Reader::new(&file).expect("a capture");
            frames.extend(records.map(|record| record.expect("a record").data.to_vec()));
        }
    }
    let judged = scapy::check(frames.iter().map(|frame| &frame[..]), &Scratch::new());
    // What the folder holds is known; the rest of it is of other protocols.
    assert_eq!(judged, Judged { ipv4: 273, ipv6: 8 });
    report("scapy: 273 recorded frames over IPv4 and 8 over IPv6 judged");
}

#[test]
fn a_run_opens_to_the_same_packets_whole_and_cut() {
    let mut opener = Opener::default();
    for Laid { bytes, sealed, segments } in runs() {
        let segment = sealed.segmentation.expect("there are several packets").segment;
        let arrival = opener.open(&bytes, Some(segment)).expect("a frame");
        let whole: Vec<_> = arrival.collect::<Result<_, _>>().expect("every ICRC holds");
        let expected: Vec<_> = segments
            .iter()
            .map(|Frame { headers, payload, .. }| Packet {
                headers: *headers,
                payload: &payload[..],
            })
            .collect();
        assert_eq!(whole, expected);

        for (frame, expected) in segments.iter().zip(&expected) {
            let mut stranger = Opener::default();
            let arrival = stranger.open(&frame.bytes, None).expect("a frame");
            assert_eq!(arrival.outer(), &frame.outer);
            let alone: Vec<_> = arrival.collect::<Result<_, _>>().expect("the ICRC holds");
            assert_eq!(alone, [*expected]);
        }
    }
}
