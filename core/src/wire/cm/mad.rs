//! The management datagram that carries a message, and the messages it may carry.

use super::connect::{Mra, Rep, Req, Rtu};
use super::disconnect::{Drep, Dreq};
use super::layout::{Field, Reader, Writer};
use super::reject::Rej;
use super::sidr::{SidrRep, SidrReq};
use crate::fields::{be16, be32, be64};
use crate::wire::malformed::{Malformed, Part, split};
use crate::wire::numbers::{CommId, TransactionId};

/// A management datagram of the connection manager's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mad<'a> {
    /// What a message and its answers have in common, chosen by whoever sends the first of them.
    pub transaction: TransactionId,
    /// What it says.
    pub message: Message<'a>,
}

impl<'a> Mad<'a> {
    /// Its length on the wire.
    pub const LEN: usize = 256;
    const HEADER: usize = 24;
    /// What every one of them begins with: base version, class, version of the class, method.
    const KIND: [u8; 4] = [1, 7, 2, 3];

    /// Reads a datagram: the first 256 of `bytes`. What its message carries is borrowed.
    ///
    /// Status, class-specific field and attribute modifier have no meaning here: they are ignored,
    /// and sent as zero.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mad, _) = split::<{ Mad::LEN }>(Part::Mad, bytes)?;
        Self::check_kind(mad)?;
        let mut from = Reader::new(mad);
        from.skip(8 * Self::KIND.len() + 32);
        let transaction = from.take()?;
        let attribute = u16::from_be_bytes(from.array());
        from.skip(48);
        Ok(Self { transaction, message: Message::read(attribute, &mut from)? })
    }

    fn check_kind(mad: &[u8; Mad::LEN]) -> Result<(), Malformed> {
        let [base_version, class, version, method, ..] = *mad;
        if base_version != Self::KIND[0] {
            return Err(Malformed::Version { part: Part::Mad, found: base_version });
        }
        if [class, version, method] != Self::KIND[1..] {
            return Err(Malformed::MadClass { class, version, method });
        }
        Ok(())
    }

    /// Reads which request a datagram carries, of which only the first bytes are there, as in a
    /// message of the network about that datagram. `None` if the datagram carries something else,
    /// or too little is quoted.
    pub fn quoted_request(quoted: &[u8]) -> Option<QuotedRequest> {
        let quoted = quoted.first_chunk::<{ QuotedRequest::ENOUGH }>()?;
        if !quoted.starts_with(&Self::KIND) || be16::<16, _>(quoted) != REQUEST {
            return None;
        }
        let (transaction, id) = (be64::<8, _>(quoted), be32::<{ Mad::HEADER }, _>(quoted));
        Some(QuotedRequest { transaction: TransactionId(transaction), id: CommId(id) })
    }

    /// Writes the datagram in place, over whatever was there.
    pub fn emit(&self, out: &mut [u8; Mad::LEN]) {
        let mut to = Writer::new(out);
        to.bytes(&Self::KIND, Self::KIND.len());
        to.skip(32);
        self.transaction.write(&mut to);
        to.bits(u64::from(self.message.attribute()), 16);
        to.skip(48);
        self.message.write(&mut to);
    }
}

/// The names by which a requester knows a request for a connection again when a message of the
/// network quotes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QuotedRequest {
    /// The request's transaction, 64 bits that a stranger has to guess.
    pub transaction: TransactionId,
    /// The requester's name for the connection.
    pub id: CommId,
}

impl QuotedRequest {
    /// How many bytes of a datagram must be quoted.
    const ENOUGH: usize = Mad::HEADER + 4;
}

/// The attribute identifier of a request.
const REQUEST: u16 = 0x0010;

/// Declares the messages by their attribute identifiers.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $attribute:literal;)+) => {
        /// One of the connection manager's messages.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $($(#[$doc])* $name($name<'a>),)+
        }

        impl<'a> Message<'a> {
            /// The attribute identifier by which the wire tells it from the others.
            const fn attribute(&self) -> u16 {
                match self {
                    $(Self::$name(_) => $attribute,)+
                }
            }

            fn read(attribute: u16, from: &mut Reader<'a>) -> Result<Self, Malformed> {
                match attribute {
                    $($attribute => from.take().map(Self::$name),)+
                    unknown => Err(Malformed::MadAttribute(unknown)),
                }
            }

            fn write(&self, to: &mut Writer<'_>) {
                match self {
                    $(Self::$name(message) => message.write(to),)+
                }
            }
        }

        $(
            impl<'a> From<$name<'a>> for Message<'a> {
                fn from(message: $name<'a>) -> Self {
                    Self::$name(message)
                }
            }

            // Reading and writing stay within a datagram because of this.
            const _: () = assert!(8 * Mad::HEADER + $name::BITS == 8 * Mad::LEN);
        )+
    };
}

messages! {
    /// A request for a connection.
    Req = 0x0010;
    /// The answer to something will take longer.
    Mra = 0x0011;
    /// A refusal.
    Rej = 0x0012;
    /// The answer that takes a connection up.
    Rep = 0x0013;
    /// The connection stands.
    Rtu = 0x0014;
    /// The request to end a connection.
    Dreq = 0x0015;
    /// The answer that ends it.
    Drep = 0x0016;
    /// The question which queue pair serves datagrams.
    SidrReq = 0x0017;
    /// The answer to that.
    SidrRep = 0x0018;
}
