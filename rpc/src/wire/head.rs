//! The words in front of metadata and bodies: hellos, welcomes, and the heads of calls.

/// A [`Hello`] as the words of a message.
pub type HelloWords = [u64; 3];
/// A [`Welcome`] as the words of a message.
pub type WelcomeWords = [u64; 5];
/// A [`CallHead`] as the words of a message.
pub type CallWords = [u64; 6];

/// The first message of a client on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The version of the protocol that the client speaks.
    pub version: u64,
    /// A random number of the client, by which the server recognises it when it reconnects.
    pub client: u64,
    /// The session that the client had on an earlier connection, to go on with; zero for a new one.
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

/// The answer of a server to a [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The version of the protocol that the server speaks. If it differs from the client's, the
    /// other fields mean nothing.
    pub version: u64,
    /// The number of the session, which each call names; zero if the server has no room for
    /// another, and [`LEAVES`](Self::LEAVES) if the server is shutting down.
    pub session: u64,
    /// A random number that the server has drawn when it was opened. A server with another number
    /// has forgotten all calls.
    pub server: u64,
    /// The longest request body that the server accepts, in bytes.
    pub longest: u64,
    /// The number of the service at which the server accepts bulk connections.
    pub bulk_service: u64,
}

impl Welcome {
    /// The number in place of a session's, by which a server that is shutting down turns clients
    /// away.
    pub const LEAVES: u64 = u64::MAX;

    pub fn words(self) -> WelcomeWords {
        [self.version, self.session, self.server, self.longest, self.bulk_service]
    }

    pub fn from_words([version, session, server, longest, bulk_service]: WelcomeWords) -> Self {
        Self { version, session, server, longest, bulk_service }
    }
}

/// A call of a client: the numbers of the session and of the call.
pub type CallKey = (u64, u64);

/// The words in front of a call's metadata and body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallHead {
    /// The number of the session that the call belongs to.
    pub session: u64,
    /// The number of the call, greater than those of all calls that the client has begun before.
    pub call: u64,
    /// The number that stands for the path of the method.
    pub method: u64,
    /// The number that stands for the schema of the method; zero if the method has none.
    pub schema: u64,
    /// How long the caller waits, in microseconds; zero for ever.
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

/// The flags of a call or an answer, with the length of the metadata and the code of a status. All
/// of it takes one word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// The length of the metadata in bytes.
    pub metadata: u16,
    /// The code of a status, in an answer.
    pub code: u8,
    /// Whether the body is a stream, which follows.
    pub streams: bool,
    /// Whether the body is too long for a message and follows by RDMA. The message then has the
    /// body's length in place of the body.
    pub long: bool,
    /// Whether an answer only says that the call was accepted and runs; the response follows later.
    pub accepted: bool,
    /// Whether an error tells that the handler has not run.
    pub not_run: bool,
    /// Whether the call is refused since the server is shutting down.
    pub leaves: bool,
}

impl Flags {
    pub fn pack(self) -> u64 {
        let Self { metadata, code, streams, long, accepted, not_run, leaves } = self;
        let bits = [streams, accepted, long, not_run, leaves];
        let bits = bits.iter().rev().fold(0, |bits, &bit| bits << 1 | u64::from(bit));
        u64::from(metadata) | u64::from(code) << 16 | bits << 24
    }

    pub fn unpack(word: u64) -> Self {
        let [a, b, code, bits, ..] = word.to_le_bytes();
        Self {
            metadata: u16::from_le_bytes([a, b]),
            code,
            streams: bits & 1 == 1,
            accepted: bits >> 1 & 1 == 1,
            long: bits >> 2 & 1 == 1,
            not_run: bits >> 3 & 1 == 1,
            leaves: bits >> 4 & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_head_that_is_read_equals_the_one_that_was_written() {
        let flags =
            Flags { metadata: 513, code: 14, accepted: true, not_run: true, ..Flags::default() };
        let leaves = Flags { leaves: true, ..flags };
        assert_eq!([flags, leaves].map(|flags| Flags::unpack(flags.pack())), [flags, leaves]);
        let head = CallHead { session: 1, call: 2, method: 3, schema: 4, timeout: 5, flags };
        assert_eq!(CallHead::from_words(head.words()), head);
    }
}
