//! Connection management: the messages by which two ends make, refuse and end a connection.
//!
//! They travel as management datagrams of 256 bytes, [`Mad`], each in one UD SEND ONLY to queue
//! pair 1 with the key [`Qkey::GSI`](super::Qkey::GSI).
//!
//! | who | sends | when |
//! |---|---|---|
//! | requester | [`Req`] | to ask for a connection |
//! | responder | [`Rep`] | to take it up |
//! | requester | [`Rtu`] | to say that it has the reply: the connection stands |
//! | either | [`Dreq`] | to end it |
//! | the other | [`Drep`] | to agree |
//!
//! In place of REP or RTU, [`Rej`] refuses; before them, [`Mra`] asks for patience. What is not
//! answered in time is sent again. Datagrams need no connection, only the queue pair that serves:
//! [`SidrReq`] asks for it and [`SidrRep`] tells.
//!
//! `rdma_cm` makes connections between IP addresses and ports: the port is in the
//! [`ServiceId`](super::ServiceId), the addresses are an [`IpCm`] in front of the private data.
//!
//! Reserved bits are sent as zero and ignored. Codes are kept as they came, known or not, so that
//! a message that is read and written again is the same.
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
