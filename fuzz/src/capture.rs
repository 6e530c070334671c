//! Capture files.

use doorbell_core::pcap::{Reader, Writer};

use super::check::inside;

/// Reads a capture file: its records follow each other without a gap, and are read again as they
/// were after they are written.
pub fn pcap(data: &[u8]) {
    let Ok(reader) = Reader::new(data) else { return };
    let mut end = 24;
    let mut written = Writer::new(Vec::new()).expect("memory takes it");
    let mut kept = Vec::new();
    let mut records = reader.clone();
    for record in records.by_ref() {
        let Ok(record) = record else { break };
        assert_eq!(inside(data, record.data), end + 16);
        end += 16 + record.data.len();
        // Fractions of more than a second may carry a time beyond what can be written.
        if written.write(record.time, record.data).is_ok() {
            kept.push(record);
        }
    }
    assert!(end <= data.len());
    assert_eq!(records.next(), None, "after an error it ends, and then stays at its end");

    let written = written.into_inner();
    let again = Reader::new(&written).expect("what was written is a capture");
    let mut kept = kept.into_iter();
    for record in again {
        let (record, was) = (record.expect("a whole record"), kept.next().expect("no more"));
        let len = was.data.len().min(Writer::<Vec<u8>>::SNAPLEN as usize);
        assert_eq!((record.time, record.data), (was.time, &was.data[..len]));
    }
    assert_eq!(kept.next(), None);
}
