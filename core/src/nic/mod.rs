//! The network adapter in software: a pure state machine.
//!
//! Packets and time go in; packets, a next time-out and completions come out. It does no input or
//! output, reads no clock, and has no randomness but a [`Seed`].
//!
//! # The two sides
//!
//! A **program** holds the ends of rings, which may be used from any thread: a [`SendQueue`] and a
//! [`ReceiveQueue`] for each queue pair, and a [`CompletionQueue`] for as many of them as it likes.
//! It posts a [`WorkRequest`] and rings the doorbell, once for several if it likes.
//!
//! The **NIC** is run by one at a time, whoever has it in hand. A turn is:
//! [`advance`](Nic::advance) if a clock was read; a burst of [`packet`](Inbox::packet)s;
//! [`transmit`](Nic::transmit), which answers doorbells, sends what may be sent, and then what is
//! owed to peers. With the NIC in hand, [`post`](Nic::post) needs neither doorbell nor turn. Before
//! sleeping, [`next_timeout`](Nic::next_timeout) says how long.
//!
//! # What it does
//!
//! | [transport](Transport) | requests | |
//! |---|---|---|
//! | reliable | send, write, read, compare-and-swap, fetch-and-add | once, in order, or both sides hear |
//! | unreliable | send, write | whole or not at all, complete when sent |
//! | datagram | send of one packet | to whomever it names, if it arrives |
//!
//! A message may bring an [attachment](Attachment) into the completion that it makes. Receives come
//! from a queue of one's own, or from one that several queue pairs [share](SharedReceiveQueue).
//! Queue pair 1 is the connection managers': its datagrams are handed [out](Nic::management) and
//! [in](Nic::manage) to whoever runs the NIC. Peers that fall silent are
//! [asked and noticed](KeepAlive).
//!
//! Of reliable requests, sends and writes are carried out in the order in which they were posted,
//! but for writes into memory that is [mapped](Nic::map), which may overtake sends. A read may see
//! what was posted after it, unless that is [fenced](WorkRequest::fenced).
//!
//! # What it promises
//!
//! Every request posted to a reliable connection completes exactly once, in the order of its queue,
//! whatever the network does: with success when the peer has all of it, or with a [`Failure`] that
//! says why, and then everything behind it is [flushed](Failure::Flushed). A message is received
//! once, whole, in order, or not at all. Nothing that arrives can make it panic, write outside what
//! was granted, or keep more than its tables: those are allocated when a queue pair is made and
//! connected, and no message allocates anything.
//!
//! On a device that cannot lose, it keeps no timers and sends no acknowledgements: the device says
//! how far the peer has taken its packets ([`Outbox::delivered`]). Refusals are sent all the same.
//! A turn there [collects](Nic::collect) what was delivered.
//!
//! What such a device delivers and no queue pair takes, since it is not there, or of another
//! service, or not connected, or connected anew since, does not pass for done: the NIC owes the
//! link a notice that names those packets, and whoever has them under way fails as if nobody had
//! answered. As on any device, a packet does not say who sent it, and one of a forgotten connection
//! is the present peer's if it bears just the number that is expected of that: hence [first
//! numbers](Nic::first_psn) that nobody can guess, and connections that are ended on both sides.
//!
//! Nobody posts to a queue pair while it is reset or taken down: a [reset](Nic::reset) borrows both
//! of its ends, and it is not [taken down](Nic::drop_queue_pair) before they are dropped. So what
//! was accepted then is flushed like everything else.
//!
//! # How it is cut
//!
//! | file | idea |
//! |---|---|
//! | `work`, `completion`, `queues` | what programs see: requests, completions, the rings' ends |
//! | `keys`, `numbering`, `random` | protection; numbers that can't be guessed |
//! | `config`, `resources`, `refusals` | making and taking down |
//! | `states`, `pair` | a queue pair's states, the ways between them, and what breaks it |
//! | `requester`, `rto` | what is sent, and sent again |
//! | `mapped` | peers' memory that is mapped here, and what is written there without a packet |
//! | `completer` | what the peer answers |
//! | `responder`, `reads` | what the peer requests, and asks of this side's memory |
//! | `receives` | where receives are taken from |
//! | `unreliable`, `datagrams`, `management` | the other services, and queue pair 1 |
//! | `hosts` | whether peers are still there |
//! | `probe` | whether the peer of one queue pair is, asked on demand |
//! | `common`, `timers`, `leaps`, `doorbells` | what queue pairs share |
//! | `device` | what a device must do, and is told |
//! | `around` | how one full link keeps nobody else waiting |
//! | `notices` | what a link is told of packets that nobody took |

mod adapter;
mod config;
mod counters;
mod device;
mod identifiers;
mod keep_alive;
mod protection;
mod queue_pair;
mod queues;
pub(crate) mod random;
mod requester;
mod requests;
mod responder;
#[allow(unsafe_code)]
mod ring;
mod state;
pub(crate) mod timers;

pub use adapter::nic::Nic;
pub use config::connection::{Change, Connection, Sending};
pub use config::errors::{ChangeError, ResourceError};
pub use config::nic::{Config, Objects};
pub(crate) use config::numbering::tag_of;
pub use config::numbering::{Numbering, NumberingError};
pub use config::queue_pair::{QueuePairConfig, Transport};
pub use config::state::State;
pub use counters::Counters;
pub use device::flow::Flow;
pub use device::inbox::Inbox;
pub use device::outbox::Outbox;
pub use identifiers::{AddressId, CompletionQueueId, MappingId, SharedReceiveQueueId};
pub use keep_alive::limits::{KeepAlive, Silence};
pub use protection::registration::{KeyError, Registration, TableFull};
pub use protection::rights::{NotRights, Rights};
pub use protection::segment::{Domain, Lkey, Segment};
pub use queues::completion::{CompletionGauge, CompletionQueue, Polled};
pub use queues::completions::Notify;
pub use queues::ends::QueuePairEnds;
pub use queues::errors::{PostError, Refused};
pub use queues::receive::ReceiveQueue;
pub use queues::send::SendQueue;
pub use queues::shared_receive::SharedReceiveQueue;
pub use random::Seed;
pub use requests::completion::{Completion, Done};
pub use requests::event::Event;
pub use requests::failure::{Cause, Failure};
pub use requests::memory::{Data, Inline, LONGEST_MESSAGE, MOST_INLINE, Memory};
pub use requests::work_request::{Attachment, Copied, Operation, ReceiveRequest, WorkRequest};
pub use responder::datagrams::DATAGRAM_HEADER;
pub use state::management::{Management, TooMany, Way};
