//! Messages that two devices send each other by the socket of their link, beside the rings.

use std::io;

use super::ring;
use crate::sys::limit::Limit;

/// The version of these messages.
const VERSION: u8 = 3;

/// The most bytes of a device's name.
pub(super) const LONGEST_NAME: usize = 90;

/// The most bytes of a message.
pub(super) const LONGEST: usize = 6 + LONGEST_NAME;

/// A message of a device to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message<'a> {
    /// The first message of a caller: its name, and the most lines that its rings should have.
    Hello { lines: u32, name: &'a str },
    /// The answer to a hello: how many lines each ring of the link has, and with it the descriptor
    /// of the link's memory; or why there will be no link.
    Answer(Result<u32, Refusal>),
    /// A message that wakes a reader, since there is something in the ring.
    Bell,
    /// A grant of memory, with the descriptor of the memory.
    Grant { tag: u128, len: u64 },
    /// The receiver's program has taken a grant.
    GrantTaken,
}

/// Why bytes can't be read as a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    /// The bytes are a hello of another version, which is to be [refused](Refusal::Version).
    OtherVersion,
    /// The bytes are no message of any version.
    Nonsense,
}

/// Why there will be no link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The peer is calling, too, and its call is the one that goes on.
    Crossed,
    /// A link between the two names exists already.
    Linked,
    /// The device has as many peers as it may.
    Full,
    /// The memory could not be had.
    NoMemory,
    /// The caller runs as another user, and not as root.
    Stranger,
    /// The caller speaks another version.
    Version,
    /// The refusing process has no file descriptor left for a link.
    Descriptors,
    /// The refusing process may not make memory as large as the rings.
    FileSize,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::Crossed,
        Self::Linked,
        Self::Full,
        Self::NoMemory,
        Self::Stranger,
        Self::Version,
        Self::Descriptors,
        Self::FileSize,
    ];

    /// Returns the reason in words, for an error on the caller's side.
    pub fn why(self) -> &'static str {
        match self {
            Self::Crossed => "it is calling, too",
            Self::Linked => "it has a link to somebody by our name, who is alive",
            Self::Full => "it has as many peers as it keeps: others must leave first",
            Self::NoMemory => {
                "its process got no memory for the rings of a link: its machine has none left, or \
                 `ulimit -v` allows the process no more"
            }
            Self::Stranger => "it runs as another user",
            Self::Version => {
                "it speaks another version: build both programs with the same version of Doorbell"
            }
            Self::Descriptors => {
                "its process has no file descriptor left for a link: allow it more with `ulimit -n`"
            }
            Self::FileSize => {
                "its process may not make memory as large as the rings of a link: allow it more \
                 with `ulimit -f`"
            }
        }
    }

    /// Returns the refusal of a caller for whose link there was no memory, for this reason.
    pub fn of(why: &io::Error) -> Self {
        match Limit::behind(why) {
            Some(Limit::Descriptors | Limit::SystemDescriptors) => Self::Descriptors,
            Some(Limit::FileSize) => Self::FileSize,
            Some(Limit::Addresses | Limit::Memory) | None => Self::NoMemory,
        }
    }
}

const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const BELL: u8 = 3;
const GRANT: u8 = 4;
const GRANT_TAKEN: u8 = 5;

impl<'a> Message<'a> {
    /// Writes the message to the front of `to`, and returns what was written.
    pub fn write<'b>(&self, to: &'b mut [u8; LONGEST]) -> &'b [u8] {
        let mut len = 0;
        let mut put = |bytes: &[u8]| {
            to[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        match *self {
            Self::Hello { lines, name } => {
                put(&[HELLO, VERSION]);
                put(&lines.to_le_bytes());
                put(name.as_bytes());
            }
            Self::Answer(Ok(lines)) => {
                put(&[ANSWER, 0]);
                put(&lines.to_le_bytes());
            }
            Self::Answer(Err(refusal)) => put(&[ANSWER, 1 + refusal as u8]),
            Self::Bell => put(&[BELL]),
            Self::Grant { tag, len } => {
                put(&[GRANT]);
                put(&tag.to_le_bytes());
                put(&len.to_le_bytes());
            }
            Self::GrantTaken => put(&[GRANT_TAKEN]),
        }
        &to[..len]
    }

    /// Reads a message from bytes, which must be that message and nothing else.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        match *bytes {
            [HELLO, VERSION, _, _, _, _, ..] => {}
            [HELLO, ..] => return Err(Unreadable::OtherVersion),
            _ => {}
        }
        Self::parse(bytes).ok_or(Unreadable::Nonsense)
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        Some(match *bytes {
            [HELLO, VERSION, a, b, c, d, ref name @ ..] => {
                let name = str::from_utf8(name).ok().filter(|name| is_name(name))?;
                Self::Hello { lines: lines([a, b, c, d])?, name }
            }
            [ANSWER, 0, a, b, c, d] => Self::Answer(Ok(lines([a, b, c, d])?)),
            [ANSWER, refusal] => {
                Self::Answer(Err(*Refusal::ALL.get(usize::from(refusal).checked_sub(1)?)?))
            }
            [BELL] => Self::Bell,
            [GRANT, ref rest @ ..] => {
                let (&tag, len) = rest.split_first_chunk()?;
                let (tag, len) = (u128::from_le_bytes(tag), len.try_into().ok()?);
                Self::Grant { tag, len: u64::from_le_bytes(len) }
            }
            [GRANT_TAKEN] => Self::GrantTaken,
            _ => return None,
        })
    }
}

/// Returns whether a device can have such a name.
pub(super) fn is_name(name: &str) -> bool {
    not_a_name(name).is_none()
}

/// Returns why a device can't have such a name, or `None` if it can. Names stand in logs and in
/// errors, and so have no control characters.
pub(super) fn not_a_name(name: &str) -> Option<String> {
    let len = name.len();
    if !(1..=LONGEST_NAME).contains(&len) {
        return Some(format!("it has {len} bytes, and may have 1 to {LONGEST_NAME}"));
    }
    let wrong = name.chars().find(|one| one.is_control())?;
    Some(format!("it has {wrong:?}, and may have no control characters"))
}

/// Reads a number of lines, if a ring can have so many.
fn lines(bytes: [u8; 4]) -> Option<u32> {
    let lines = u32::from_le_bytes(bytes);
    (lines.is_power_of_two() && (ring::FEWEST..=ring::MOST).contains(&lines)).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_none_that_was_cut_short() {
        let mut messages = vec![
            Message::Hello { lines: ring::MOST, name: "job/0" },
            Message::Answer(Ok(ring::FEWEST)),
            Message::Bell,
            Message::Grant { tag: u128::MAX, len: 1 },
            Message::GrantTaken,
        ];
        messages.extend(Refusal::ALL.map(|refusal| Message::Answer(Err(refusal))));
        for message in messages {
            let mut memory = [0; LONGEST];
            let written = message.write(&mut memory);
            assert_eq!(Message::read(written), Ok(message));
            for len in 0..written.len() {
                assert_ne!(Message::read(&written[..len]), Ok(message));
            }
        }
    }
}
