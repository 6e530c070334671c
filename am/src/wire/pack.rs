//! Packs: several short messages in one send, which share the cost of a packet.

use std::ops::Range;

use doorbell_verbs::{Buf, Imm};

use crate::wire::{Content, Header, Kind, Taken, WIDE, put_words};

/// The most bytes of a pack, which are those of a packet.
pub(crate) const MOST: usize = 4096;
/// A number of bytes that divides the length of packets.
pub(crate) const PACKET: usize = 1024;
/// The longest message that is put into a pack.
pub(crate) const LONGEST: usize = 1024;
/// The most zeros that are sent to make a pack as long as a packet.
const MOST_ZEROS: usize = MOST / 4;
/// The zeros with which a pack is filled up.
static ZEROS: [u8; MOST_ZEROS] = [0; MOST_ZEROS];
/// The header of the message that fills up a pack: an answer to no request.
pub(crate) const FILLING: Header = Header { kind: Kind::Done, words: 0, handler: 0, call: 0 };
/// The length of a message's first word: the header, the payload's length, and an acknowledgement.
pub(crate) const HEAD: usize = 8;
/// The number of bits of a payload's length, enough for a MiB.
const LENGTH: u32 = 21;
const _: () = assert!(LENGTH + Taken::BITS == 32);

/// A message found in the bytes of a send.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub header: Header,
    /// The range of its words and payload.
    pub data: Range<usize>,
    /// The offset of the next message.
    pub next: usize,
    /// The acknowledgement that the message carries.
    pub taken: Taken,
}

/// A pack that is being filled.
pub(crate) struct Pack {
    buffer: Buf,
}

/// Returns the number of bytes that a message takes, with the zeros behind it.
#[inline]
pub(crate) fn size(header: Header, content: Content<'_>) -> usize {
    HEAD + header.between() + content.len().next_multiple_of(8)
}

/// Returns the first word of a message.
#[inline]
pub(crate) fn head(header: Header, content: Content<'_>, taken: Taken) -> u64 {
    let (Imm(imm), payload) = (header.imm(), content.len() - 8 * header.words);
    let above = payload as u64 | u64::from(taken.0) << LENGTH;
    u64::from(imm) | above << 32
}

/// Puts a message into as many bytes as [it takes](size).
#[inline]
pub(crate) fn put(bytes: &mut [u8], header: Header, content: Content<'_>, taken: Taken) {
    let (first, mut rest) = bytes.split_at_mut(HEAD);
    first.copy_from_slice(&head(header, content, taken).to_le_bytes());
    if header.is_wide() {
        let (count, words) = rest.split_at_mut(8);
        count.copy_from_slice(&(header.words as u64).to_le_bytes());
        rest = words;
    }
    let (data, zeros) = rest.split_at_mut(content.len());
    content.put(data);
    // Even filling nothing would be a function call.
    if !zeros.is_empty() {
        zeros.fill(0);
    }
}

/// Makes a buffer a message: writes the header and the words into the room in front of the payload,
/// and zeros behind it.
pub(crate) fn put_in_front(buffer: &mut Buf, header: Header, words: &[u64], taken: Taken) {
    let begin = HEAD + 8 * words.len();
    let (front, payload) = buffer.split_at_mut(begin);
    let (first, front) = front.split_at_mut(HEAD);
    first.copy_from_slice(&head(header, Content { words, payload }, taken).to_le_bytes());
    put_words(words, front);
    let zeros = payload.len().next_multiple_of(8) - payload.len();
    let filled = buffer.extend_from_slice(ZEROS.get(..zeros).unwrap_or_default());
    debug_assert!(filled.is_ok(), "buffers have room for whole words");
}

impl Pack {
    /// Makes a pack with a first message.
    pub fn of(buffer: Buf, header: Header, content: Content<'_>, taken: Taken) -> Self {
        let mut pack = Self { buffer };
        let fits = pack.put(header, content, taken);
        debug_assert!(fits, "a message that may go into a pack fits one");
        pack
    }

    /// Makes a pack with a first message that is encoded already.
    pub fn of_bytes(buffer: Buf, message: &[u8]) -> Self {
        let mut pack = Self { buffer };
        let put = pack.buffer.extend_from_slice(message);
        debug_assert!(put.is_ok(), "a few bytes fit");
        pack
    }

    /// Puts a message behind the others, if there is room. Returns whether there was.
    #[inline]
    pub fn put(&mut self, header: Header, content: Content<'_>, taken: Taken) -> bool {
        let start = self.buffer.len();
        let end = start + size(header, content);
        if end > self.most() {
            return false;
        }
        let _ = self.buffer.set_len(end);
        let Some(free) = self.buffer.get_mut(start..) else { return false };
        put(free, header, content, taken);
        true
    }

    /// Fills the pack up to the length of a packet, if it is nearly as long. Packs of one length
    /// leave as one run of packets.
    pub fn filled(mut self, taken: Taken) -> Self {
        let rest = self.most() - self.buffer.len();
        if let Some(zeros) = ZEROS.get(HEAD..rest) {
            self.put(FILLING, Content::encoded(zeros), taken);
        }
        self
    }

    /// Returns the most bytes that the pack may have.
    #[inline]
    fn most(&self) -> usize {
        MOST.min(self.buffer.capacity())
    }

    pub fn into_buffer(self) -> Buf {
        self.buffer
    }
}

/// Parses the message at an offset. Returns `None` if the bytes are no message, or end within one.
#[inline]
pub(crate) fn message(bytes: &[u8], at: usize) -> Option<Message> {
    let &[a, b, c, d, ref above @ ..] = bytes.get(at..)?.first_chunk::<HEAD>()?;
    let mut header = Header::from_imm(Imm(u32::from_le_bytes([a, b, c, d])));
    let mut start = at + HEAD;
    if header.is_wide() {
        let count =
            usize::try_from(u64::from_le_bytes(*bytes.get(start..)?.first_chunk()?)).ok()?;
        header.words = Some(count).filter(|count| (WIDE..bytes.len()).contains(count))?;
        start += 8;
    }
    let above = u32::from_le_bytes(*above);
    let taken = Taken((above >> LENGTH) as u16);
    let end = start + 8 * header.words + (above & ((1 << LENGTH) - 1)) as usize;
    let next = start + (end - start).next_multiple_of(8);
    (next <= bytes.len()).then_some(Message { header, data: start..end, next, taken })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Room;
    use crate::wire::Kind;

    #[test]
    fn a_pack_yields_the_messages_that_were_put_into_it() {
        let mut pack = Pack { buffer: Buf::with_capacity(8000) };
        let payload: Vec<u8> = (0..200).map(|at| at as u8).collect();
        let message_of = |number: usize| {
            let words = vec![number as u64; number % 40];
            let (handler, call) = (number as u16, 7);
            let header = Header { kind: Kind::Request, words: words.len(), handler, call };
            (header, words, &payload[..number % 101])
        };
        let put = |number: &usize| {
            let (header, words, payload) = message_of(*number);
            pack.put(header, Content { words: &words, payload }, Taken(*number as u16))
        };
        let count = (0..1000).take_while(put).count();
        let bytes = pack.into_buffer();
        assert!(bytes.len() <= MOST && count > 10, "{count} in {}", bytes.len());
        let mut at = 0;
        for number in 0..count {
            let (header, words, payload) = message_of(number);
            let Message { header: found, data, next, taken } =
                message(&bytes, at).expect("a message");
            assert_eq!((found, taken), (header, Taken(number as u16)));
            assert_eq!(*Room::new().read(&bytes[data.start..][..8 * words.len()]), *words);
            assert_eq!(bytes[data][8 * words.len()..], *payload);
            at = next;
        }
        assert_eq!((at, message(&bytes, at)), (bytes.len(), None));
    }

    #[test]
    fn a_filled_pack_has_the_length_of_a_packet_and_no_further_messages() {
        let header = Header { kind: Kind::Request, words: 0, handler: 1, call: 0 };
        let lens = (0..=MOST - HEAD).step_by(8).map(|len| (len, len + HEAD));
        for (len, end) in lens {
            let mut pack = Pack { buffer: Buf::with_capacity(MOST) };
            assert!(pack.put(header, Content::encoded(&vec![1; len]), Taken(2)));
            let bytes = pack.filled(Taken(3)).into_buffer();
            let found = message(&bytes, end);
            let filled = end < MOST && MOST - end <= MOST_ZEROS;
            assert_eq!(bytes.len(), if filled { MOST } else { end });
            let data = end + HEAD..MOST;
            let filling = Message { header: FILLING, data, next: MOST, taken: Taken(3) };
            assert_eq!(found, filled.then_some(filling), "behind {end} bytes");
            assert!(bytes[end..].iter().skip(HEAD).all(|&byte| byte == 0));
        }
    }

    #[test]
    fn a_message_that_is_made_in_its_buffer_is_as_one_that_is_put_there() {
        let header = Header { kind: Kind::Request, words: 2, handler: 5, call: 0 };
        let words = [1, u64::MAX];
        for len in [0, 1, 7, 8, 3000] {
            let payload = vec![3; len];
            let content = Content { words: &words, payload: &payload };
            let mut expected = vec![9; size(header, content)];
            put(&mut expected, header, content, Taken(2));
            let mut buffer = Buf::with_capacity(MOST);
            buffer.set_len(HEAD + 16).expect("it has room");
            buffer.extend_from_slice(&payload).expect("it has room");
            put_in_front(&mut buffer, header, &words, Taken(2));
            assert_eq!(buffer[..], expected, "a payload of {len} bytes");
        }
    }

    #[test]
    fn whatever_is_no_pack_has_no_messages_beyond_its_end() {
        let mut state = 1_u64;
        for len in (0..256).step_by(3) {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 60) as u8
                })
                .collect();
            let mut at = 0;
            while let Some(Message { header, data, next, .. }) = message(&bytes, at) {
                assert!(data.end <= next && next <= len && data.len() >= 8 * header.words);
                at = next;
            }
        }
    }
}
