//! The frames of real peers, recorded on the wire, are read and written exactly.
//!
//! The captures in `tests/captures` hold what the Linux kernel's software RoCE and its tools sent
//! (`tests/captures/README.md` says which). Another folder of captures is read as well when the
//! variable `DOORBELL_CAPTURES` names it.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use doorbell_core::encap::{IpIdRecovery, Opener, Outer};
use doorbell_core::pcap::Reader;
use doorbell_core::wire::cm::Mad;
use doorbell_core::wire::{
    EtherType, Ethernet, Extensions, IpId, Ipv4, Ipv6, Malformed, Packet, Qpn, padding,
};

#[derive(Default, Debug)]
struct Tally {
    files: usize,
    roce: usize,
    mads: usize,
    others: usize,
}

#[test]
fn every_recorded_frame_reads_verifies_and_writes_back_byte_for_byte() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let tally = check_folder(&ours);
    // What the folder holds is known, so a reader that overlooks frames is found out.
    assert_eq!((tally.files, tally.roce, tally.mads, tally.others), (11, 281, 7, 185));
    if let Some(folder) = std::env::var_os("DOORBELL_CAPTURES") {
        let tally = check_folder(Path::new(&folder));
        assert!(tally.roce > 0, "DOORBELL_CAPTURES names a folder with no RoCE frame in it");
    }
}

/// A UDP socket does not show the identification, which the kernel's driver chooses in its own way.
#[test]
fn the_kernels_packets_are_accepted_without_their_identifications() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    let (mut taken, mut refused) = (0, 0);
    for path in captures(&ours) {
        let file = std::fs::read(&path).expect("the capture can be read");
        // What is known of each sender begins anew with each recording.
        let (mut opener, mut senders) = (Opener::default(), HashMap::new());
        for record in Reader::new(&file).expect("a capture") {
            let record = record.expect("a whole frame");
            let Ok((Outer::V2Ipv4(ethernet, ip, udp), transport)) = Outer::parse(record.data)
            else {
                continue;
            };
            let shown = Outer::V2Ipv4(ethernet, Ipv4 { id: IpId(0), ..ip }, udp);
            let ids = senders.entry((ip.source, udp.source)).or_insert_with(IpIdRecovery::default);
            let mut arrival = opener.datagram(&shown, ids, transport, None).expect("a packet");
            match arrival.next() {
                Some(Ok(_)) => taken += 1,
                _ => refused += 1,
            }
        }
    }
    assert_eq!((taken, refused), (273, 0));
}

fn check_folder(folder: &Path) -> Tally {
    let mut tally = Tally::default();
    for path in captures(folder) {
        let file = std::fs::read(&path).expect("the capture can be read");
        let name = path.display();
        for (index, record) in Reader::new(&file).expect("a capture").enumerate() {
            let record = record.unwrap_or_else(|why| panic!("{name}, frame {}: {why}", index + 1));
            check_frame(record.data, &mut tally)
                .unwrap_or_else(|why| panic!("{name}, frame {}: {why}", index + 1));
        }
        tally.files += 1;
    }
    report(&format!(
        "{}: {} RoCE frames in {} files read, verified and written back, {} of them with a \
         management datagram; {} frames of other protocols passed over",
        folder.display(),
        tally.roce,
        tally.files,
        tally.mads,
        tally.others,
    ));
    tally
}

fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|why| panic!("{} can't be read: {why}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .collect();
    paths.sort();
    paths
}

fn check_frame(frame: &[u8], tally: &mut Tally) -> Result<(), Malformed> {
    if !is_roce(frame) {
        tally.others += 1;
        check_other(frame);
        return Ok(());
    }
    let (outer, _) = Outer::parse(frame)?;
    let mut opener = Opener::default();
    let packets = opener.open(frame, None)?.collect::<Result<Vec<_>, _>>()?;
    let [packet] = packets[..] else { panic!("{} packets in one frame", packets.len()) };

    assert_eq!(usize::from(packet.headers.bth.pad()), padding(packet.payload.len()));
    let written = write_back(&outer, &packet);
    assert_eq!(written, frame[..written.len()], "{outer:?} {packet:?}");
    assert!(frame[written.len()..].iter().all(|&byte| byte == 0), "Ethernet's padding is zero");
    tally.roce += 1;

    if packet.headers.bth.destination() == Qpn::GSI {
        assert!(matches!(packet.headers.extensions, Extensions::Deth(_)));
        let mad = Mad::parse(packet.payload)?;
        let mut written = [0xAA; Mad::LEN];
        mad.emit(&mut written);
        assert_eq!(written, packet.payload, "{mad:?}");
        tally.mads += 1;
    }
    Ok(())
}

/// Whether a frame claims to be RoCE, by the few bytes that say so and by no parser of ours: what
/// claims it must parse.
fn is_roce(frame: &[u8]) -> bool {
    let at = |index: usize| frame.get(index).copied();
    let to_roce_port = |udp: usize| (at(udp + 2), at(udp + 3)) == (Some(0x12), Some(0xB7));
    match (at(12), at(13)) {
        (Some(0x89), Some(0x15)) => true,
        (Some(0x08), Some(0x00)) => {
            let header = at(14).map_or(0, |byte| usize::from(byte & 0xF) * 4);
            let first_fragment = at(20).is_some_and(|byte| byte & 0x3F == 0) && at(21) == Some(0);
            at(23) == Some(17) && first_fragment && to_roce_port(14 + header)
        }
        (Some(0x86), Some(0xDD)) => at(20) == Some(17) && to_roce_port(54),
        _ => false,
    }
}

/// Of other protocols, the headers that RoCE shares with them, where they have the same form.
fn check_other(frame: &[u8]) {
    let Ok((ethernet, rest)) = Ethernet::parse(frame) else { return };
    assert_eq!(ethernet.to_bytes(), frame[..Ethernet::LEN]);
    match ethernet.ethertype {
        EtherType::IPV4 => {
            if let Ok((ip, _)) = Ipv4::parse(rest) {
                assert_eq!(ip.to_bytes(), rest[..Ipv4::LEN]);
            }
        }
        EtherType::IPV6 => {
            if let Ok((ip, _)) = Ipv6::parse(rest) {
                assert_eq!(ip.to_bytes(), rest[..Ipv6::LEN]);
            }
        }
        _ => {}
    }
}

/// Writes a frame from nothing but what was read of it.
fn write_back(outer: &Outer, packet: &Packet<&[u8]>) -> Vec<u8> {
    let headers = &packet.headers;
    let mut body = headers.to_bytes()[..headers.len()].to_vec();
    body.extend_from_slice(packet.payload);
    body.resize(body.len() + usize::from(headers.bth.pad()), 0);

    let mut frame = outer.to_bytes()[..outer.len()].to_vec();
    let icrc = outer.icrc(&body);
    frame.extend(body);
    frame.extend(icrc.to_le_bytes());
    frame
}

/// Tells even when the test passes: the harness would keep `println!` to itself.
fn report(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error is open");
}
