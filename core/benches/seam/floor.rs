//! What the kernel and the processor alone charge, by the plainest loops: no protocol, no Tokio.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::meet::Meeting;
use crate::report::Latencies;
use crate::sys::{PacketSocket, ReceiveRing};

/// An EtherType that IEEE 802 leaves to local experiments.
const EXPERIMENT: u16 = 0x88B5;
const IPV4: u16 = 0x0800;
const PAYLOAD: usize = 64;
const SEGMENTS: usize = 64;
const HEADERS: usize = 14 + 20 + 8;
const VIRTIO: usize = 10;

/// A cache line between two processes, back and forth.
pub fn line(meeting: &Meeting, rounds: u64) -> Latencies {
    let (mine, theirs) = meeting.lines();
    let mut times = Latencies::new(rounds);
    meeting.meet();
    for round in 1..=rounds {
        let start = Instant::now();
        if meeting.leads() {
            mine.store(round, Ordering::Release);
        }
        while theirs.load(Ordering::Acquire) != round {}
        if !meeting.leads() {
            mine.store(round, Ordering::Release);
        }
        times.record_round_trip(start.elapsed());
    }
    times
}

/// A frame of 16 bytes and its Ethernet header, back and forth.
pub fn frame(meeting: &Meeting, interface: &str, rounds: u64) -> io::Result<Latencies> {
    let socket = PacketSocket::open(interface, EXPERIMENT, false)?;
    let mut ring = ReceiveRing::new(&socket, 16 << 10, 2048)?;
    let frame = plain_frame(16);
    let mut times = Latencies::new(rounds);
    meeting.meet();
    for _ in 0..rounds {
        let start = Instant::now();
        if meeting.leads() {
            socket.send_plainly(&frame)?;
        }
        while ring.next(|_| ()).is_none() {}
        ring.give_back();
        if !meeting.leads() {
            socket.send_plainly(&frame)?;
        }
        times.record_round_trip(start.elapsed());
    }
    Ok(times)
}

/// Messages of 64 bytes a second, 64 a segmentation-offload frame, one way.
pub fn runs(meeting: &Meeting, interface: &str, duration: Duration) -> io::Result<f64> {
    let socket = PacketSocket::open(interface, IPV4, true)?;
    meeting.meet();
    if meeting.leads() {
        let frame = run_frame();
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < duration {
            socket.send_plainly(&frame)?;
            sent += SEGMENTS;
        }
        let rate = sent as f64 / start.elapsed().as_secs_f64();
        meeting.finish();
        return Ok(rate);
    }
    let mut buffer = vec![0; 1 << 17];
    while !meeting.finished() {
        while socket.receive(&mut buffer).is_some() {}
    }
    Ok(0.0)
}

fn plain_frame(payload: usize) -> Vec<u8> {
    let mut frame = vec![0xFF; 6];
    frame.extend([2; 6]);
    frame.extend(EXPERIMENT.to_be_bytes());
    frame.resize(14 + payload, b'x');
    frame
}

/// Virtio, Ethernet, IPv4, UDP, payload; nobody is meant to understand it.
fn run_frame() -> Vec<u8> {
    let payload = PAYLOAD * SEGMENTS;
    let mut frame = vec![0; VIRTIO + HEADERS + payload];
    frame[0] = 1; // the checksum is to be made
    frame[1] = 5; // UDP segmentation
    frame[2..4].copy_from_slice(&(HEADERS as u16).to_ne_bytes());
    frame[4..6].copy_from_slice(&(PAYLOAD as u16).to_ne_bytes());
    frame[6..8].copy_from_slice(&34u16.to_ne_bytes());
    frame[8..10].copy_from_slice(&6u16.to_ne_bytes());
    let packet = &mut frame[VIRTIO..];
    packet[..6].fill(0xFF);
    packet[6..12].fill(2);
    packet[12..14].copy_from_slice(&IPV4.to_be_bytes());
    let ip = &mut packet[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((payload + 28) as u16).to_be_bytes());
    (ip[6], ip[8], ip[9]) = (0x40, 64, 17);
    ip[12..20].copy_from_slice(&[10, 79, 0, 1, 10, 79, 0, 9]);
    let sum: u32 = ip.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let udp = &mut packet[34..42];
    udp[0..2].copy_from_slice(&4791u16.to_be_bytes());
    udp[2..4].copy_from_slice(&4791u16.to_be_bytes());
    udp[4..6].copy_from_slice(&((payload + 8) as u16).to_be_bytes());
    frame
}
