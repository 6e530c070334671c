//! The recording of a run's frames as a capture file, for Wireshark.

use std::collections::VecDeque;
use std::io::{self, Write};

use doorbell_core::pcap::Writer;

use crate::Time;

/// The bytes of a capture's headers: of the file, and of each record.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// The latest time of a capture, whose seconds have 32 bits.
const LAST_MOMENT: u64 = u32::MAX as u64 * 1_000_000_000;

/// Recorded frames with their times. The oldest frames are dropped when there are too many.
#[derive(Default, Debug)]
pub(crate) struct Recording {
    on: bool,
    limit: usize,
    /// The bytes that the records take in a file.
    size: usize,
    records: VecDeque<(Time, Vec<u8>)>,
}

impl Recording {
    pub(crate) fn start(&mut self, limit: usize) {
        self.on = true;
        self.limit = limit.saturating_sub(FILE_HEADER);
        self.forget();
    }

    pub(crate) fn stop(&mut self) {
        self.on = false;
    }

    pub(crate) fn see(&mut self, at: Time, frame: &[u8]) {
        if self.on {
            self.size += RECORD_HEADER + frame.len();
            self.records.push_back((at, frame.to_vec()));
            self.forget();
        }
    }

    fn forget(&mut self) {
        while self.size > self.limit {
            let Some((_, frame)) = self.records.pop_front() else { return };
            self.size -= RECORD_HEADER + frame.len();
        }
    }

    pub(crate) fn write(&self, to: impl Write) -> io::Result<()> {
        let mut file = Writer::new(to)?;
        for (at, frame) in &self.records {
            file.write(at.as_nanos().min(LAST_MOMENT), frame)?;
        }
        file.flush()
    }
}
