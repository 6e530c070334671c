//! The management datagram (MAD), and the messages of the connection manager that it may carry.

use super::connect::{Mra, Rep, Req, Rtu};
use super::disconnect::{Drep, Dreq};
use super::layout::{Field, Reader, Writer};
use super::reject::Rej;
use super::sidr::{SidrRep, SidrReq};
use crate::fields::{be16, be32, be64};
use crate::wire::malformed::{Malformed, Part, split};
use crate::wire::numbers::{CommId, TransactionId};

/// A management datagram (MAD) of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mad<'a> {
    /// The transaction ID, which a message and its answers share, and which the sender of the first
    /// chooses.
    pub transaction: TransactionId,
    /// The message that the datagram carries.
    pub message: Message<'a>,
}

impl<'a> Mad<'a> {
    /// The length of the datagram on the wire.
    pub const LEN: usize = 256;
    const HEADER: usize = 24;
    /// The first bytes of every such datagram: base version, class, class version, method.
    const KIND: [u8; 4] = [1, 7, 2, 3];

    /// Parses the datagram in the first 256 of `bytes`. The message borrows its variable parts.
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

    /// Identifies the REQ in a datagram that an ICMP error quotes, of which only the first bytes
    /// are there. Returns `None` if the datagram carries another message, or too little of it is
    /// quoted.
    pub fn quoted_request(quoted: &[u8]) -> Option<QuotedRequest> {
        let quoted = quoted.first_chunk::<{ QuotedRequest::ENOUGH }>()?;
        if !quoted.starts_with(&Self::KIND) || be16::<16, _>(quoted) != REQUEST {
            return None;
        }
        let (transaction, id) = (be64::<8, _>(quoted), be32::<{ Mad::HEADER }, _>(quoted));
        Some(QuotedRequest { transaction: TransactionId(transaction), id: CommId(id) })
    }

    /// Writes the datagram to `out`, over whatever was there.
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

/// The identifiers by which a requester recognises its REQ when an ICMP error quotes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QuotedRequest {
    /// The transaction ID of the REQ: 64 bits that a stranger has to guess.
    pub transaction: TransactionId,
    /// The requester's communication ID.
    pub id: CommId,
}

impl QuotedRequest {
    /// The number of bytes of a datagram that must be quoted.
    const ENOUGH: usize = Mad::HEADER + 4;
}

/// The attribute ID of a REQ.
const REQUEST: u16 = 0x0010;

/// Declares the messages with their attribute IDs.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $attribute:literal;)+) => {
        /// A message of the connection manager.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $($(#[$doc])* $name($name<'a>),)+
        }

        impl<'a> Message<'a> {
            /// Returns the attribute ID, which identifies the kind of message on the wire.
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

            // This assertion is why reading and writing stay within a datagram.
            const _: () = assert!(8 * Mad::HEADER + $name::BITS == 8 * Mad::LEN);
        )+
    };
}

messages! {
    /// The request for a connection.
    Req = 0x0010;
    /// The notice that an answer will take longer.
    Mra = 0x0011;
    /// The rejection of a connection.
    Rej = 0x0012;
    /// The reply that accepts a connection.
    Rep = 0x0013;
    /// The confirmation that a connection is established.
    Rtu = 0x0014;
    /// The request to end a connection.
    Dreq = 0x0015;
    /// The reply that confirms the end of a connection.
    Drep = 0x0016;
    /// The request to resolve a service ID to a queue pair that serves datagrams.
    SidrReq = 0x0017;
    /// The reply with the queue pair that serves datagrams.
    SidrRep = 0x0018;
}
