//! What fuzz targets and benchmarks use: the ends of two rings, and messages.

use std::sync::atomic::AtomicU64;

use doorbell_core::encap::{Full, PathId};
use doorbell_core::memory::Region;
use doorbell_core::nic::Inbox;
use doorbell_core::wire::Headers;

use super::link::Segment;
use super::message::{LONGEST, Message};
use super::ring::{self, Nonsense, Reader, Spare, Writer};
use super::sleep::{Shared, Written};

/// How many bytes of addresses a link takes at each end, with rings of the usual size.
pub const LINK_BYTES: u64 = Segment::bytes(ring::MOST) as u64;

/// The reader and the writer of a link's end, over memory that a test writes as a peer may.
pub struct RingEnds {
    incoming: Region,
    outgoing: Region,
    reader: Reader,
    writer: Writer,
}

impl RingEnds {
    /// Makes an end with rings of `lines` lines, a power of two from 256 to 65,536. The ring that
    /// it writes may take `spare` bytes beside its memory from the beginning.
    pub fn new(lines: u32, spare: usize) -> Self {
        let [incoming, outgoing] = [(); 2].map(|()| Region::new(ring::bytes(lines)));
        let reader = Reader::new(incoming.clone(), lines);
        let mut writer = Writer::new(outgoing.clone(), lines);
        writer.may_take(Spare::new(spare));
        Self { incoming, outgoing, reader, writer }
    }

    /// Returns the words of the ring that this end reads, and of the one that it writes. The peer
    /// may write either at any time.
    pub fn words(&self) -> [&[AtomicU64]; 2] {
        [self.incoming.words(), self.outgoing.words()]
    }

    /// Returns handles to the memory of the ring that this end reads, and of the one that it
    /// writes.
    pub fn memory(&self) -> [Region; 2] {
        [self.incoming.clone(), self.outgoing.clone()]
    }

    /// Reads the next record, and returns its bytes, if there is one.
    ///
    /// # Errors
    /// When the peer has written what no honest peer writes, so that its link would be taken down.
    pub fn take(&mut self, inbox: &mut impl Inbox) -> Result<Option<usize>, String> {
        let taken = self.reader.take(PathId(0), inbox);
        taken.map_err(|Nonsense| "what the peer wrote makes no sense".to_owned())
    }

    /// Returns how many lines were read.
    pub fn read(&self) -> u64 {
        self.reader.read()
    }

    /// Tells the peer that all that was read is answered for.
    pub fn tell(&mut self) {
        self.reader.settle();
        self.reader.tell(self.writer.written());
    }

    /// Writes a record, and returns its place.
    ///
    /// # Errors
    /// When the peer has left no room.
    pub fn push(&mut self, headers: &Headers, payload: &[u8]) -> Result<u64, Full> {
        self.writer.claim_early();
        self.writer.push(headers, payload).map(|(place, _)| place)
    }

    /// Returns how many lines were written.
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Returns how far the peer says that it has answered for what was written, and whether it has
    /// said what no honest peer says.
    pub fn delivered(&mut self) -> (u64, bool) {
        (self.writer.delivered(self.reader.read()), self.writer.nonsense())
    }

    /// Returns whether the peer says that it sleeps.
    pub fn must_wake(&self) -> bool {
        Written::<Shared>::new().must_wake(self.writer.sleeping())
    }
}

impl std::fmt::Debug for RingEnds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingEnds").finish_non_exhaustive()
    }
}

/// Reads a message of a device's socket, and writes it again; `None` if the bytes are no message.
pub fn shm_message_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = Message::read(bytes).ok()?;
    Some(message.write(&mut [0; LONGEST]).to_vec())
}
