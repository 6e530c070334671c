//! Several short messages in one send.
//!
//! A message that has company does not pay for a packet of its own.

use std::ops::Range;

use doorbell_verbs::{Buf, Imm};

use crate::wire::{Content, Header, Kind, Taken, WIDE};

/// The most bytes of a pack: a packet's.
pub(crate) const MOST: usize = 4096;
/// The longest message that goes into one with others.
pub(crate) const LONGEST: usize = 1024;
/// The most bytes that are sent in vain to make one as long as others.
const MOST_ZEROS: usize = MOST / 4;
static ZEROS: [u8; MOST_ZEROS] = [0; MOST_ZEROS];
/// Of which message those are the payload: of an answer to no request.
pub(crate) const FILLING: Header = Header { kind: Kind::Done, words: 0, handler: 0, call: 0 };
/// A header, and the length of the payload, above which it says what the sender has taken.
pub(crate) const HEAD: usize = 8;
/// The bits of a payload's length: a MiB takes them all.
const LENGTH: u32 = 21;
const _: () = assert!(LENGTH + Taken::BITS == 32);

/// A message in a send.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub header: Header,
    /// Where its words and payload are.
    pub data: Range<usize>,
    /// Where the next one begins.
    pub next: usize,
    /// What its sender had taken when it was put there.
    pub taken: Taken,
}

/// A pack that is being filled.
pub(crate) struct Pack {
    buffer: Buf,
}

/// How many bytes a message takes, with the zeros behind it.
#[inline]
pub(crate) fn size(header: Header, content: Content<'_>) -> usize {
    HEAD + header.between() + content.len().next_multiple_of(8)
}

/// The word before a message's own.
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
    // To fill nothing is a call.
    if !zeros.is_empty() {
        zeros.fill(0);
    }
}

impl Pack {
    /// One with a message in it.
    pub fn of(buffer: Buf, header: Header, content: Content<'_>, taken: Taken) -> Self {
        let mut pack = Self { buffer };
        let fits = pack.put(header, content, taken);
        debug_assert!(fits, "a message that may go into a pack fits one");
        pack
    }

    /// One with a message in it that was put before.
    pub fn of_bytes(buffer: Buf, message: &[u8]) -> Self {
        let mut pack = Self { buffer };
        let put = pack.buffer.extend_from_slice(message);
        debug_assert!(put.is_ok(), "a few bytes fit");
        pack
    }

    /// Puts a message behind the others, if there is room. Whether there was.
    #[inline]
    pub fn put(&mut self, header: Header, content: Content<'_>, taken: Taken) -> bool {
        let start = self.buffer.len();
        let end = start + size(header, content);
        if end > self.most() {
            return false;
        }
        let _ = self.buffer.set_len(end);
        put(&mut self.buffer[start..], header, content, taken);
        true
    }

    /// One that others follow, as long as each of them: so they go in a row, as packets of one
    /// length.
    pub fn filled(mut self, taken: Taken) -> Self {
        let rest = self.most() - self.buffer.len();
        if (HEAD..=MOST_ZEROS).contains(&rest) {
            self.put(FILLING, Content::encoded(&ZEROS[HEAD..rest]), taken);
        }
        self
    }

    /// How long it gets.
    #[inline]
    fn most(&self) -> usize {
        MOST.min(self.buffer.capacity())
    }

    pub fn into_buffer(self) -> Buf {
        self.buffer
    }
}

/// The message that begins here. None if that is no message, or goes beyond the end.
#[inline]
pub(crate) fn message(bytes: &[u8], at: usize) -> Option<Message> {
    let both = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let mut header = Header::from_imm(Imm(both as u32));
    let mut start = at + HEAD;
    if header.is_wide() {
        let count = usize::try_from(u64::from_le_bytes(*bytes[start..].first_chunk()?)).ok()?;
        header.words = Some(count).filter(|count| (WIDE..bytes.len()).contains(count))?;
        start += 8;
    }
    let above = (both >> 32) as u32;
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
    fn messages_come_out_of_a_pack_as_they_went_in() {
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
    fn a_pack_that_others_follow_has_their_length_and_no_more_messages() {
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
