//! The link between the [connection manager](crate::cm) and the [NIC](crate::nic), which know
//! nothing of each other: what the terms of a connection mean for its queue pairs.
//!
//! It also has what a driver needs to know of [encryption](Encrypt), which another crate provides.
//!
//! A driver of both carries datagrams from one to the other, by a [`Route`], and changes the state
//! of queue pairs as events require, by an [`Agreement`].
//!
//! | event | what the driver does with its queue pair | what it calls on the manager |
//! |---|---|---|
//! | none yet: it requests a connection | init | [`connect`](crate::cm::ConnectionManager::connect) |
//! | [`Asked`](crate::cm::Event::Asked) | init; ready to receive, by [`Agreement::responders`] | [`accept`](crate::cm::ConnectionManager::accept) |
//! | [`Replied`](crate::cm::Event::Replied) | ready to receive and to send, by [`Agreement::requesters`] | [`ready`](crate::cm::ConnectionManager::ready) |
//! | the NIC's [`Established`](crate::nic::Event::Established) | | [`arrived`](crate::cm::ConnectionManager::arrived) |
//! | the manager's [`Established`](crate::cm::Event::Established) | ready to send, unless it has broken meanwhile | |
//! | [`Failed`](crate::cm::Event::Failed), [`Ended`](crate::cm::Event::Ended) | error; polls what is flushed | |
//! | the NIC's [`Broken`](crate::nic::Event::Broken) | polls what is flushed | [`disconnect`](crate::cm::ConnectionManager::disconnect), or [`reject`](crate::cm::ConnectionManager::reject) if it is not established yet |
//! | [`Released`](crate::cm::Event::Released) | reset, or taken down | |

mod agreement;
mod encryption;
mod route;

pub use agreement::Agreement;
pub use encryption::{
    Answered, Answering, Encrypt, EncryptionError, NotIdentified, Requesting, Seal, Session,
    clear_of, seal_refusal,
};
pub use route::Route;
