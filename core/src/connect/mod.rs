//! Between the [connection manager](crate::cm) and the [NIC](crate::nic), which know nothing of
//! each other: what one's terms mean for the other's queue pairs.
//!
//! Whoever drives both carries datagrams from one to the other, by a [`Route`], and moves queue
//! pairs as events say, by an [`Agreement`]. Nothing here has a state.
//!
//! | the driver hears | and does with its queue pair | and says to the manager |
//! |---|---|---|
//! | nothing yet: it asks | init | [`connect`](crate::cm::ConnectionManager::connect) |
//! | [`Asked`](crate::cm::Event::Asked) | init; ready to receive, by [`Agreement::responders`] | [`accept`](crate::cm::ConnectionManager::accept) |
//! | [`Replied`](crate::cm::Event::Replied) | ready to receive and to send, by [`Agreement::requesters`] | [`ready`](crate::cm::ConnectionManager::ready) |
//! | the NIC's [`Established`](crate::nic::Event::Established) | | [`arrived`](crate::cm::ConnectionManager::arrived) |
//! | the manager's [`Established`](crate::cm::Event::Established) | ready to send, unless it broke since | |
//! | [`Failed`](crate::cm::Event::Failed), [`Ended`](crate::cm::Event::Ended) | error; polls what is flushed | |
//! | the NIC's [`Broken`](crate::nic::Event::Broken) | polls what is flushed | [`disconnect`](crate::cm::ConnectionManager::disconnect), or [`reject`](crate::cm::ConnectionManager::reject) if it does not stand yet |
//! | [`Released`](crate::cm::Event::Released) | reset, or taken down | |

mod agreement;
mod route;

pub use agreement::Agreement;
pub use route::Route;
