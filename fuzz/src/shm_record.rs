//! Packets with nothing around them, in words.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::shm_record::{self, TAG_LEN};
use doorbell_core::memory::words;
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Malformed, Packet, Part};

use super::input::Input;

/// A record in words. The input is the length that is claimed for it, its first word as it was
/// loaded, and the words: the first of them may have changed since.
pub fn shm_record(data: &[u8]) {
    let mut input = Input(data);
    let claimed = match input.u16() {
        0xFFFF => usize::MAX - usize::from(input.u8()),
        claimed => usize::from(claimed),
    };
    let first = input.array();
    let record = words_of(input.0, input.0.len() / 8);
    let have = (record.len() * 8).saturating_sub(TAG_LEN);

    let parsed = shm_record::parse(&record, u64::from_ne_bytes(first), claimed);
    assert_eq!(shm_record::tag(u64::from_ne_bytes(first)), first[..TAG_LEN]);
    if claimed > have {
        let error = Malformed::Length { part: Part::Bth, claimed, have };
        return assert_eq!(parsed.err(), Some(error));
    }
    // It is the packet that these bytes are anywhere else, but for what aligns the payload.
    let mut flat = first.to_vec();
    flat.extend(input.0.get(8..record.len() * 8).unwrap_or_default());
    flat.truncate(TAG_LEN + claimed);
    flat.drain(..TAG_LEN);
    if let Some(bth) = flat.first_chunk()
        && let Ok(bth) = Bth::from_bytes(bth)
    {
        let headers = Bth::LEN + bth.opcode().layout().len();
        let need = (TAG_LEN + headers).next_multiple_of(8) - TAG_LEN;
        if (headers..need).contains(&claimed) {
            let error = Malformed::Truncated { part: Part::Payload, need, have: claimed };
            return assert_eq!(parsed.err(), Some(error));
        }
        flat.drain(headers.min(claimed)..need.min(claimed));
    }
    let elsewhere = Packet::parse(&flat);
    let mut packet = match (parsed, elsewhere) {
        (Ok(packet), Ok(same)) => {
            assert_eq!(packet.headers, same.headers);
            assert_eq!(bytes_of(packet.payload), same.payload);
            packet
        }
        (parsed, elsewhere) => return assert_eq!(parsed.err(), elsewhere.err()),
    };

    // Records are not padded, but take whole words. What stands behind is somebody else's.
    packet.headers.bth = packet.headers.bth.with_pad(0);
    let len = shm_record::record_len(&packet.headers, packet.payload.len());
    let out = words_of(&[0xA5; 8].repeat(len.div_ceil(8) + 1), len.div_ceil(8) + 1);
    shm_record::emit(&out, [1, 2, 3, 4], &packet.headers, packet.payload);
    let first = out[0].load(Ordering::Acquire);
    assert_eq!(shm_record::tag(first), [1, 2, 3, 4]);
    let again = shm_record::parse(&out, first, len - TAG_LEN).expect("what was emitted parses");
    assert_eq!(again.headers, packet.headers);
    assert_eq!(bytes_of(again.payload), bytes_of(packet.payload));
    let end = len.next_multiple_of(8);
    let mut behind = vec![0; out.len() * 8 - end];
    words::copy_out(&out, end, &mut behind);
    assert!(behind.iter().all(|&byte| byte == 0xA5), "written beyond the record");
}

fn words_of(bytes: &[u8], count: usize) -> Vec<AtomicU64> {
    let words: Vec<_> = (0..count).map(|_| AtomicU64::new(0)).collect();
    words::copy_in(&words, 0, &bytes[..count * 8]);
    words
}

fn bytes_of(payload: impl Payload) -> Vec<u8> {
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(&mut bytes);
    bytes
}
