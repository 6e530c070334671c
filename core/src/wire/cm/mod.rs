//! Communication management: the messages by which two sides establish, reject and release a
//! connection.
//!
//! Each message is a management datagram of 256 bytes, a [`Mad`], in one UD SEND ONLY packet to
//! queue pair 1 with the key [`Qkey::GSI`](super::Qkey::GSI).
//!
//! | side | sends | in order to |
//! |---|---|---|
//! | requester | [`Req`] | request a connection |
//! | responder | [`Rep`] | accept the connection |
//! | requester | [`Rtu`] | confirm that it has the REP, by which the connection is established |
//! | either | [`Dreq`] | release the connection |
//! | the other | [`Drep`] | confirm the release |
//!
//! In place of a REP or an RTU, a [`Rej`] rejects the connection; before them, an [`Mra`] asks for
//! more time. A message that is not answered in time is sent again. Datagrams need no connection,
//! only the queue pair that serves them: [`SidrReq`] asks for that queue pair, and [`SidrRep`] tells
//! it.
//!
//! `rdma_cm` makes connections between IP addresses and ports: the port is in the
//! [`ServiceId`](super::ServiceId), and the addresses are in an [`IpCm`] in front of the private
//! data.
//!
//! Reserved bits are sent as zero and ignored. Codes are kept as they came, known or not, so a
//! message that is parsed and written again is the same.
//!
//! ```
//! use doorbell_core::wire::cm::{CmPort, IpCm, IpPair, Mad, Message, PrivateData, Req};
//! use doorbell_core::wire::{CommId, Psn, Qpn, ServiceId, TransactionId};
//!
//! let addressing = IpCm {
//!     source_port: CmPort(53_079),
//!     addresses: IpPair::V4 { source: [10, 77, 0, 2].into(), destination: [10, 77, 0, 3].into() },
//! };
//! let private = addressing.before(b"hello")?;
//! let request = Req {
//!     local: CommId(1),
//!     service: ServiceId::from_tcp_port(CmPort(7174)),
//!     qpn: Qpn::new(0x15),
//!     psn: Psn::new(0xEB_5F9C),
//!     private: PrivateData::from(&private),
//!     ..Req::default()
//! };
//! let mut datagram = [0; Mad::LEN];
//! Mad { transaction: TransactionId(1), message: request.into() }.emit(&mut datagram);
//!
//! let Message::Req(received) = Mad::parse(&datagram)?.message else { panic!("not a request") };
//! assert_eq!(received, request);
//! let (from, said) = received.ip_cm()?;
//! assert_eq!(from, addressing);
//! assert!(said.starts_with(b"hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connect;
mod disconnect;
mod ip;
mod layout;
mod mad;
mod numbers;
mod private_data;
mod reject;
mod sidr;

pub use connect::{Mra, Path, Rep, Req, Rtu};
pub use disconnect::{Drep, Dreq};
pub use ip::{CmPort, IpCm, IpPair};
pub use mad::{Mad, Message, QuotedRequest};
pub use numbers::*;
pub use private_data::{AdditionalInfo, PrivateData, TooLong};
pub use reject::Rej;
pub use sidr::{SidrRep, SidrReq};
