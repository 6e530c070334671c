//! Frames: values to bytes, bytes to values.
//!
//! Every frame begins with a frame header of 24 bytes. Numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | the kind of frame |
//! | 1 | flags |
//! | 2–3 | the number of a clear to send, or how many frames were placed |
//! | 4–7 | the epoch of the sender of the message |
//! | 8–15 | the identity of the sender of the frame |
//! | 16–19 | the message number |
//! | 20–23 | the frame number |
//!
//! Behind it stand a message header of 24 bytes in the first frame of a message, or 28 bytes of a
//! clear to send; then the sender's name, if the flags say so; then the data.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use doorbell_verbs::RemoteMemory;

/// The length of a frame header.
pub const FRAME_HEADER: usize = 24;
/// The length of a message header.
pub const MESSAGE_HEADER: usize = 24;
/// The most bytes of a name, with the byte that tells its length.
pub const LONGEST_NAME: usize = 1 + 255;
/// The shortest stride of a message with several frames. The bound limits how many frames a forged
/// header can claim for a receive.
pub const LEAST_STRIDE: usize = 64;

/// A frame, without the data of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The epoch of the sender of the message.
    pub epoch: u32,
    /// The number of the message that the frame belongs to.
    pub number: u32,
    pub kind: Kind,
}

/// The kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The first frame of a message, with data.
    First(MessageHeader, Flags),
    /// A further frame of a message, with data.
    Data { frame: u32, flags: Flags },
    /// A notice that frames were placed by RDMA writes: those from `first` on, `count` of them.
    Placed { first: u32, count: u16, flags: Flags },
    /// The acknowledgement of the collection that a frame belongs to.
    Acknowledged { frame: u32 },
    /// A clear to send.
    Clear(Clear),
    /// The acknowledgement of a whole message.
    Received,
    /// The answer to the acknowledgement of a whole message: the receiver may forget the message.
    CleanUp,
    /// The sender of the frame has closed its endpoint.
    Closed,
}

/// The message header, in the first frame of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageHeader {
    /// The length of the message.
    pub len: u64,
    /// The match bits, which MPI calls the tag.
    pub bits: u64,
    /// The number of frames.
    pub frames: u32,
    /// The bytes of each frame but the last.
    pub stride: u16,
    /// The frames of a collection.
    pub collection: u8,
}

/// The flags of frames with data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// The message is sent in windows that its receiver clears. Otherwise in collections.
    pub windows: bool,
    /// The frame ends a collection.
    pub last: bool,
    /// The sender requests to send more.
    pub more: bool,
    /// The frame is the last of the message.
    pub end: bool,
    /// The sender would place frames by RDMA writes.
    pub places: bool,
}

/// A clear to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clear {
    /// The number of this clear to send among those of the message, from 1 on. Zero stands for a
    /// receiver that has no receive for the message yet.
    pub turn: u16,
    /// The first frame that may be sent.
    pub base: u32,
    /// The frames that may be sent: bit `n` stands for frame `base + n`.
    pub wanted: u64,
    /// The memory of the posted receive, if the sender is to place the frames there.
    pub memory: Option<RemoteMemory>,
}

impl MessageHeader {
    /// The header of a message of `len` bytes; `None` if that would be too many frames.
    pub fn new(len: usize, bits: u64, stride: u16, collection: u8) -> Option<Self> {
        let frames = frames(len as u64, stride)?;
        Some(Self { len: len as u64, bits, frames, stride, collection })
    }

    /// Whether the header makes sense by itself.
    fn is_sound(&self) -> bool {
        let short = self.frames > 1 && usize::from(self.stride) < LEAST_STRIDE;
        !short && self.collection > 0 && frames(self.len, self.stride) == Some(self.frames)
    }

    /// The place of a frame of the message in its body.
    pub fn range(&self, frame: u32) -> std::ops::Range<usize> {
        let start = u64::from(frame) * u64::from(self.stride);
        let end = (start + u64::from(self.stride)).min(self.len);
        let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
        place(start)..place(end)
    }
}

/// The number of frames of a message: one at least, which may be empty.
fn frames(len: u64, stride: u16) -> Option<u32> {
    let frames = if stride == 0 { u64::from(len > 0) } else { len.div_ceil(u64::from(stride)) };
    u32::try_from(frames.max(1)).ok()
}

/// A frame that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'f> {
    /// The identity of the sender of the frame.
    pub sender: u64,
    /// The name of the sender of the frame, if the frame carries it.
    pub name: Option<&'f str>,
    pub head: Head,
    pub data: &'f [u8],
}

/// The flag of frames that carry their sender's name.
const NAMED: u8 = 1 << 7;
/// The flag of a clear to send that carries memory.
const MEMORY: u8 = 1;

impl Flags {
    fn byte(self) -> u8 {
        let Self { windows, last, more, end, places } = self;
        [windows, last, more, end, places]
            .iter()
            .enumerate()
            .fold(0, |byte, (at, &is_set)| byte | u8::from(is_set) << at)
    }

    fn from_byte(byte: u8) -> Option<Self> {
        let is_set = |at: u8| byte >> at & 1 == 1;
        let [windows, last, more, end, places] = [0, 1, 2, 3, 4].map(is_set);
        (byte & !NAMED < 1 << 5).then_some(Self { windows, last, more, end, places })
    }
}

impl Head {
    /// Appends the frame's headers to `to`, with the name of its sender if one is given.
    pub fn encode(&self, sender: u64, name: Option<&str>, to: &mut Vec<u8>) {
        let (kind, flags, argument, frame) = match self.kind {
            Kind::First(_, flags) => (1, flags.byte(), 0, 0),
            Kind::Data { frame, flags } => (2, flags.byte(), 0, frame),
            Kind::Placed { first, count, flags } => (3, flags.byte(), count, first),
            Kind::Acknowledged { frame } => (4, 0, 0, frame),
            Kind::Clear(clear) => (5, u8::from(clear.memory.is_some()), clear.turn, clear.base),
            Kind::Received => (6, 0, 0, 0),
            Kind::CleanUp => (7, 0, 0, 0),
            Kind::Closed => (8, 0, 0, 0),
        };
        to.extend([kind, flags | if name.is_some() { NAMED } else { 0 }]);
        to.extend(argument.to_be_bytes());
        to.extend(self.epoch.to_be_bytes());
        to.extend(sender.to_be_bytes());
        to.extend(self.number.to_be_bytes());
        to.extend(frame.to_be_bytes());
        match self.kind {
            Kind::First(MessageHeader { len, bits, frames, stride, collection }, _) => {
                to.extend(len.to_be_bytes());
                to.extend(bits.to_be_bytes());
                to.extend(frames.to_be_bytes());
                to.extend(stride.to_be_bytes());
                to.extend([collection, 0]);
            }
            Kind::Clear(Clear { wanted, memory, .. }) => {
                to.extend(wanted.to_be_bytes());
                to.extend(memory.map_or([0; RemoteMemory::ENCODED], |memory| memory.to_bytes()));
            }
            _ => {}
        }
        if let Some(name) = name {
            // Names are far shorter, so nothing is cut off.
            let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
            to.push(len);
            to.extend(name.bytes().take(len.into()));
        }
    }
}

impl<'f> Frame<'f> {
    /// Parses the bytes of a frame. Returns `None` if the frame is malformed.
    pub fn parse(bytes: &'f [u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [kind, flags] = rest.take::<2>()?;
        let argument = u16::from_be_bytes(rest.take()?);
        let epoch = u32::from_be_bytes(rest.take()?);
        let sender = u64::from_be_bytes(rest.take()?);
        let number = u32::from_be_bytes(rest.take()?);
        let frame = u32::from_be_bytes(rest.take()?);
        let kind = match kind {
            1 => Kind::First(rest.message_header()?, Flags::from_byte(flags)?),
            2 => Kind::Data { frame, flags: Flags::from_byte(flags)? },
            3 => Kind::Placed { first: frame, count: argument, flags: Flags::from_byte(flags)? },
            4 => Kind::Acknowledged { frame },
            5 => {
                let wanted = u64::from_be_bytes(rest.take()?);
                let memory = RemoteMemory::from_bytes(rest.take()?);
                let memory = (flags & MEMORY != 0).then_some(memory);
                Kind::Clear(Clear { turn: argument, base: frame, wanted, memory })
            }
            6 => Kind::Received,
            7 => Kind::CleanUp,
            8 => Kind::Closed,
            _ => return None,
        };
        let name = if flags & NAMED == 0 { None } else { Some(rest.name()?) };
        let carries = matches!(kind, Kind::First(..) | Kind::Data { .. });
        let head = Head { epoch, number, kind };
        (carries || rest.0.is_empty()).then_some(Self { sender, name, head, data: rest.0 })
    }
}

/// The bytes of a frame that were not parsed yet.
struct Rest<'f>(&'f [u8]);

impl<'f> Rest<'f> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn message_header(&mut self) -> Option<MessageHeader> {
        let len = u64::from_be_bytes(self.take()?);
        let bits = u64::from_be_bytes(self.take()?);
        let frames = u32::from_be_bytes(self.take()?);
        let stride = u16::from_be_bytes(self.take()?);
        let [collection, _] = self.take::<2>()?;
        Some(MessageHeader { len, bits, frames, stride, collection })
            .filter(MessageHeader::is_sound)
    }

    fn name(&mut self) -> Option<&'f str> {
        let [len] = self.take::<1>()?;
        let (name, rest) = self.0.split_at_checked(len.into())?;
        self.0 = rest;
        std::str::from_utf8(name).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Vec<Head> {
        let header = MessageHeader::new(10_000, 7, 1400, 3).expect("few frames");
        let flags = Flags { windows: true, more: true, ..Flags::default() };
        let memory = Some(RemoteMemory::from_bytes([3; RemoteMemory::ENCODED]));
        let kinds = [
            Kind::First(header, Flags { last: true, places: true, ..Flags::default() }),
            Kind::Data { frame: 5, flags },
            Kind::Placed { first: 9, count: 16, flags: Flags { end: true, ..flags } },
            Kind::Acknowledged { frame: 2 },
            Kind::Clear(Clear { turn: 3, base: 17, wanted: 0xffff, memory }),
            Kind::Clear(Clear { turn: 0, base: 0, wanted: 0, memory: None }),
            Kind::Received,
            Kind::CleanUp,
            Kind::Closed,
        ];
        kinds.map(|kind| Head { epoch: 1, number: 2, kind }).to_vec()
    }

    #[test]
    fn frames_of_all_kinds_are_parsed_into_what_was_encoded() {
        for head in heads() {
            for name in [None, Some("udp:127.0.0.1:5000#1.2")] {
                let mut bytes = Vec::new();
                head.encode(77, name, &mut bytes);
                assert_eq!(Frame::parse(&bytes), Some(Frame { sender: 77, name, head, data: &[] }));
                for len in 0..bytes.len() {
                    let cut: Vec<_> = bytes.iter().copied().take(len).collect();
                    assert_eq!(Frame::parse(&cut), None, "{len} bytes of {head:?}");
                }
            }
        }
    }

    #[test]
    fn message_headers_whose_numbers_contradict_each_other_are_malformed() {
        let sound = MessageHeader::new(10_000, 7, 1400, 3).expect("few frames");
        assert!(sound.is_sound());
        assert!(!MessageHeader { frames: 7, ..sound }.is_sound());
        assert!(!MessageHeader { len: u64::MAX, ..sound }.is_sound());
        assert!(!MessageHeader { stride: 0, ..sound }.is_sound());
        assert!(!MessageHeader { stride: 1, frames: 10_000, ..sound }.is_sound());
        assert!(!MessageHeader { collection: 0, ..sound }.is_sound());
        assert!(MessageHeader::new(0, 0, 0, 1).expect("one frame").is_sound());
    }

    #[test]
    fn the_frames_of_a_message_cover_its_body() {
        let header = MessageHeader::new(10_000, 7, 1400, 3).expect("few frames");
        assert_eq!(header.frames, 8);
        assert_eq!((header.range(0), header.range(7)), (0..1400, 9800..10_000));
    }
}
