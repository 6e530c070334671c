//! The words in front of metadata and bodies.

/// The words of [`Hello`].
pub type HelloWords = [u64; 3];
/// The words of [`Welcome`].
pub type WelcomeWords = [u64; 5];
/// The words of [`CallHead`].
pub type CallWords = [u64; 6];

/// What a client says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The version of what will be said.
    pub version: u64,
    /// The client's number, by which the server knows it when it comes again: drawn at random.
    pub client: u64,
    /// The session that the client had before, to go on with, or zero.
    pub session: u64,
}

impl Hello {
    pub fn words(self) -> HelloWords {
        [self.version, self.client, self.session]
    }

    pub fn from_words([version, client, session]: HelloWords) -> Self {
        Self { version, client, session }
    }
}

/// What a server answers to [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The server's version. With another than the client's, nothing else holds.
    pub version: u64,
    /// The number of the session, which each call names; zero if the server has no room for one.
    pub session: u64,
    /// The server's number, drawn at random when it began: another one has forgotten what was
    /// called.
    pub server: u64,
    /// The longest body that the server takes.
    pub longest: u64,
    /// The service by which the server takes lines for long bodies.
    pub lines: u64,
}

impl Welcome {
    pub fn words(self) -> WelcomeWords {
        [self.version, self.session, self.server, self.longest, self.lines]
    }

    pub fn from_words([version, session, server, longest, lines]: WelcomeWords) -> Self {
        Self { version, session, server, longest, lines }
    }
}

/// What stands in front of a call's metadata and body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallHead {
    /// The session.
    pub session: u64,
    /// The call's number: larger than those of all calls that the client began before.
    pub call: u64,
    /// The number of the method's path.
    pub method: u64,
    /// The number of the method's schema, or zero.
    pub schema: u64,
    /// For how many microseconds the caller waits; zero for ever.
    pub timeout: u64,
    pub flags: Flags,
}

impl CallHead {
    pub fn words(self) -> CallWords {
        let Self { session, call, method, schema, timeout, flags } = self;
        [session, call, method, schema, timeout, flags.pack()]
    }

    pub fn from_words([session, call, method, schema, timeout, flags]: CallWords) -> Self {
        Self { session, call, method, schema, timeout, flags: Flags::unpack(flags) }
    }
}

/// The length of the metadata, the code of a status and flags, which are one word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// The length of the metadata in bytes.
    pub metadata: u16,
    /// The code of a status.
    pub code: u8,
    /// Whether the body behind is a stream.
    pub streams: bool,
    /// Whether the body is too long for a message: its length is here in its place.
    pub long: bool,
    /// Of an answer: whether it only says that the call runs, and the response follows later.
    pub accepted: bool,
}

impl Flags {
    pub fn pack(self) -> u64 {
        let Self { metadata, code, streams, long, accepted } = self;
        let bits = [streams, accepted, long];
        let bits = bits.iter().rev().fold(0, |bits, &bit| bits << 1 | u64::from(bit));
        u64::from(metadata) | u64::from(code) << 16 | bits << 24
    }

    pub fn unpack(word: u64) -> Self {
        Self {
            metadata: word as u16,
            code: (word >> 16) as u8,
            streams: word >> 24 & 1 == 1,
            accepted: word >> 25 & 1 == 1,
            long: word >> 26 & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_the_same_when_their_words_are_read() {
        let flags = Flags { metadata: 513, code: 14, accepted: true, ..Flags::default() };
        assert_eq!(Flags::unpack(flags.pack()), flags);
        let head = CallHead { session: 1, call: 2, method: 3, schema: 4, timeout: 5, flags };
        assert_eq!(CallHead::from_words(head.words()), head);
    }
}
