//! Links: to each peer, a ring each way and a socket.

use std::io;
use std::os::fd::BorrowedFd;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;

use super::message::{LONGEST, Message};
use super::ring::{self, Reader, Writer};
use super::sleep::{Shared, Written};
use crate::sys::mapping::populate;
use crate::sys::unix::{ReceivedMessage, Socket};
use crate::sys::unix::{Sealed, Words};

/// The memory that the two ends of a link share, with both rings. Of long rings, only the first
/// part is provided from the beginning.
pub(super) struct Segment {
    pub sealed: Sealed,
    words: Words,
    lines: u32,
}

/// An end of a segment. Each end writes the ring that the other reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The end of the device that was called, which made the segment.
    Called,
    /// The end of the device that called.
    Caller,
    /// The only end of a link from a device to itself, which needs one ring.
    Both,
}

impl Segment {
    /// Returns the size in bytes of a segment with rings of `lines` lines.
    pub const fn bytes(lines: u32) -> usize {
        2 * ring::bytes(lines)
    }

    /// Returns how many bytes of a segment are provided from the beginning.
    pub const fn first_bytes(lines: u32) -> usize {
        2 * ring::first_bytes(lines)
    }

    pub fn new(lines: u32) -> io::Result<Self> {
        Self::of(Sealed::hollow(Self::bytes(lines))?, lines)
    }

    /// Maps sealed memory as a segment, be it this device's or a peer's.
    pub fn of(sealed: Sealed, lines: u32) -> io::Result<Self> {
        let words = sealed.map(false)?;
        let segment = Self { sealed, words, lines };
        for index in [0, 1] {
            let (start, first) = (index * ring::bytes(lines), ring::first_bytes(lines));
            segment.sealed.fill(start..start + first)?;
            // The pages are there: this maps them, so that no message waits for that.
            let _ = populate(&segment.ring(index).words()[..first / 8]);
        }
        Ok(segment)
    }

    fn ring(&self, index: usize) -> Region {
        let bytes = ring::bytes(self.lines);
        self.words.region(index * bytes, bytes)
    }

    fn rings(&self, side: Side) -> (Writer, Reader) {
        let (written, read) = match side {
            Side::Called => (1, 0),
            Side::Caller => (0, 1),
            Side::Both => (0, 0),
        };
        let writer = Writer::new(self.ring(written), self.lines);
        (writer, Reader::new(self.ring(read), self.lines))
    }
}

/// The state of the peer at the other end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PeerState {
    /// The peer is there, as far as is known.
    Up,
    /// The peer left, or died. What it wrote before is still to be read.
    Left,
    /// The peer wrote what no honest peer writes. Nothing of it is read any more.
    Broken,
}

/// A link to one peer.
pub(super) struct Link {
    pub id: PathId,
    pub writer: Writer,
    pub reader: Reader,
    pub state: PeerState,
    pub socket: Socket,
    /// The socket by which the bell is rung, if not `socket`: in a link from a device to itself.
    far: Option<Socket>,
    /// The name by which the peer joined.
    pub name: Box<str>,
    /// How many grants of this device the peer's program has not taken yet.
    pub granted: usize,
    /// How many grants of the peer this device's program has not taken yet.
    pub waiting: usize,
    /// True if the link is not looked at before its socket tells of something.
    pub dozes: bool,
    /// How far was read at the last call of [`is_silent`](Self::is_silent).
    read_before: u64,
}

impl Link {
    pub fn new(id: PathId, segment: &Segment, side: Side, socket: Socket, name: &str) -> Self {
        let (writer, reader) = segment.rings(side);
        let state = PeerState::Up;
        let name = name.into();
        Self {
            id,
            writer,
            reader,
            state,
            socket,
            far: None,
            name,
            granted: 0,
            waiting: 0,
            dozes: false,
            read_before: 0,
        }
    }

    /// Returns whether nothing was read since the last call.
    pub fn is_silent(&mut self) -> bool {
        let read = self.reader.read();
        std::mem::replace(&mut self.read_before, read) == read
    }

    /// Makes a link from a device to itself.
    pub fn to_self(id: PathId, segment: &Segment, name: &str) -> io::Result<Self> {
        let [near, far] = Socket::pair()?;
        Ok(Self { far: Some(far), ..Self::new(id, segment, Side::Both, near, name) })
    }

    /// Tells the peer how far what it wrote was read and answered for.
    #[inline]
    pub fn tell(&mut self) {
        self.reader.tell(self.writer.written());
    }

    /// Wakes the peer, if it sleeps.
    #[inline]
    pub fn wake(&mut self, written: &Written<Shared>) {
        if written.must_wake(self.writer.sleeping()) {
            self.ring_the_bell();
        }
    }

    #[cold]
    fn ring_the_bell(&mut self) {
        // If there is no room, the peer has enough to read that wakes it. If it is gone, nothing is
        // lost.
        let _ = send(self.far.as_ref().unwrap_or(&self.socket), Message::Bell, None);
    }

    /// Sends a message to the peer, with a descriptor if one is given.
    pub fn say(&self, message: Message<'_>, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        send(&self.socket, message, fd)
    }
}

/// Sends a message along a socket, with a descriptor if one is given.
pub(super) fn send(
    socket: &Socket,
    message: Message<'_>,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    socket.send(message.write(&mut [0; LONGEST]), fd)
}

/// Receives a message from a socket. An error counts as the end of the connection.
pub(super) fn receive(socket: &Socket, to: &mut [u8; LONGEST + 1]) -> ReceivedMessage {
    socket.receive(to).unwrap_or(ReceivedMessage::End)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use doorbell_core::nic::{Flow, Inbox};
    use doorbell_core::payload::Payload;
    use doorbell_core::wire::{
        Bth, Extensions, Headers, Malformed, Opcode, Packet, PathMtu, Psn, Qpn,
    };

    use super::*;
    use crate::shm::ring::Spare;
    use crate::sys::mapping::refuse;

    struct Count(usize);

    impl Inbox for Count {
        fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {
            self.0 += 1;
        }
        fn malformed(&mut self, why: Malformed) {
            panic!("{why}");
        }
        fn gone(&mut self, _: PathId) {}
    }

    /// Returns how many bytes of memory the system has provided for a segment.
    fn taken(segment: &Segment) -> usize {
        let file = File::from(segment.sealed.as_fd().try_clone_to_owned().expect("a descriptor"));
        file.metadata().expect("what it is").blocks() as usize * 512
    }

    /// Fills what a writer may, reads all of it, and returns how many records that were.
    fn fill(writer: &mut Writer, reader: &mut Reader) -> usize {
        let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(0));
        let headers = Headers { bth, extensions: Extensions::None };
        let mut push = || {
            writer.claim_early();
            writer.push(&headers, &[][..]).is_ok()
        };
        let pushed = (0..).take_while(|_| push()).count();
        let mut count = Count(0);
        while reader.take(PathId(0), &mut count) != Ok(None) {}
        reader.settle();
        reader.tell(0);
        assert_eq!(count.0, pushed);
        pushed
    }

    #[test]
    fn a_ring_to_which_the_system_gives_no_more_stays_short_and_pays_once() {
        const PART: usize = 4096;
        let spare = Spare::new(PART * 64);
        let refused = Segment::new(ring::MOST).expect("memory");
        refuse(&refused.ring(0).words()[ring::own_bytes(ring::MOST) / 8..]);
        let (mut writer, mut reader) = refused.rings(Side::Both);
        writer.may_take(spare.clone());
        for _ in 0..3 {
            assert_eq!(fill(&mut writer, &mut reader), PART);
        }
        let other = || {
            let segment = Segment::new(ring::MOST).expect("memory");
            let (mut writer, mut reader) = segment.rings(Side::Both);
            writer.may_take(spare.clone());
            fill(&mut writer, &mut reader)
        };
        // Memory that was refused counts as taken while the writer lives.
        assert_eq!(other(), PART);
        drop(writer);
        assert_eq!(other(), 2 * PART);
    }

    #[test]
    fn a_long_ring_takes_its_memory_when_its_reader_is_behind() {
        let lines = ring::MOST;
        let segment = Segment::new(lines).expect("memory");
        // The system may give each part a page more at either end.
        let slack = 4 * 4096;
        let first = Segment::first_bytes(lines);
        assert!((first..=first + slack).contains(&taken(&segment)), "{}", taken(&segment));

        let (mut writer, _) = segment.rings(Side::Caller);
        let (_, mut reader) = segment.rings(Side::Called);
        writer.may_take(Spare::new(ring::bytes(lines)));
        let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(0));
        let headers = Headers { bth, extensions: Extensions::None };
        let payload = [0; PathMtu::Mtu4096.bytes()];
        let mut count = Count(0);
        while writer.push(&headers, &payload[..]).is_ok() {
            count.0 += 1;
        }
        let long = first / 2 + ring::bytes(lines);
        assert!((long..=long + slack).contains(&taken(&segment)), "{}", taken(&segment));

        let sent = std::mem::take(&mut count.0);
        while reader.take(PathId(0), &mut count) != Ok(None) {}
        assert_eq!(count.0, sent);
    }
}
