//! A link to one peer: a ring each way, and a socket.

use std::io;
use std::os::fd::BorrowedFd;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;

use super::message::{LONGEST, Message};
use super::ring::{self, Reader, Writer};
use super::sleep::{Shared, Written};
use crate::sys::mapping::populate;
use crate::sys::memfd::{Sealed, Words};
use crate::sys::unix::{Received, Socket};

/// What the two ends of a link share: both rings. Of long ones, the memory of the first part only
/// is there from the beginning.
pub(super) struct Segment {
    pub sealed: Sealed,
    words: Words,
    lines: u32,
}

/// Which end of a segment: each writes the ring that the other reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Called,
    Caller,
    /// Of a link to oneself: one ring is enough.
    Both,
}

impl Segment {
    /// The bytes of a segment with rings of so many lines.
    pub const fn bytes(lines: u32) -> usize {
        2 * ring::bytes(lines)
    }

    /// How many of them are there from the beginning.
    pub const fn first_bytes(lines: u32) -> usize {
        2 * ring::first_bytes(lines)
    }

    pub fn new(lines: u32) -> io::Result<Self> {
        Self::of(Sealed::hollow(Self::bytes(lines))?, lines)
    }

    /// The one that a peer has made.
    pub fn of(sealed: Sealed, lines: u32) -> io::Result<Self> {
        let words = sealed.map(false)?;
        let segment = Self { sealed, words, lines };
        for index in [0, 1] {
            let (start, first) = (index * ring::bytes(lines), ring::first_bytes(lines));
            segment.sealed.fill(start..start + first)?;
            // They are there: this maps them, before a message waits for it.
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

/// Whether there is still anybody at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Up,
    /// It left, or died. What it wrote before is still to be read.
    Left,
    /// It wrote what can't be: nothing of it is read any more.
    Broken,
}

pub(super) struct Link {
    pub id: PathId,
    pub writer: Writer,
    pub reader: Reader,
    pub standing: Standing,
    pub socket: Socket,
    /// Where the bell is rung, if not by the socket: of a link to oneself.
    far: Option<Socket>,
    /// The peer's name.
    pub name: Box<str>,
    /// Grants that the peer's program has not taken yet, and those that this one has not.
    pub granted: usize,
    pub waiting: usize,
    /// Whether the link is not looked at before its socket tells of something.
    pub dozes: bool,
    /// How far was read when it was last asked whether the link is silent.
    read_before: u64,
}

impl Link {
    pub fn new(id: PathId, segment: &Segment, side: Side, socket: Socket, name: &str) -> Self {
        let (writer, reader) = segment.rings(side);
        let standing = Standing::Up;
        let name = name.into();
        Self {
            id,
            writer,
            reader,
            standing,
            socket,
            far: None,
            name,
            granted: 0,
            waiting: 0,
            dozes: false,
            read_before: 0,
        }
    }

    /// Whether nothing was read since this was asked before.
    pub fn is_silent(&mut self) -> bool {
        let read = self.reader.read();
        std::mem::replace(&mut self.read_before, read) == read
    }

    /// A link to oneself.
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
        // If there is no room, the peer has more than enough to read; if it is gone, so be it.
        let _ = send(self.far.as_ref().unwrap_or(&self.socket), Message::Bell, None);
    }

    /// Says something to the peer.
    pub fn say(&self, message: Message<'_>, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        send(&self.socket, message, fd)
    }
}

/// Sends a message.
pub(super) fn send(
    socket: &Socket,
    message: Message<'_>,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    socket.send(message.write(&mut [0; LONGEST]), fd)
}

/// Receives a message; errors are the end, too.
pub(super) fn receive(socket: &Socket, to: &mut [u8; LONGEST + 1]) -> Received {
    socket.receive(to).unwrap_or(Received::End)
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

    /// The memory that a segment has taken.
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
        // What was refused is on its account as long as it is there.
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
