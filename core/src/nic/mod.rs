//! The network adapter in software: a pure state machine.
//!
//! Packets and time go in; packets, a next time-out and completions come out. The NIC does no input
//! or output, reads no clock, and has no randomness but a [`Seed`].
//!
//! # The two sides
//!
//! A **program** holds the ends of rings, which may be used from any thread: a [`SendQueue`] and a
//! [`ReceiveQueue`] for each queue pair, and a [`CompletionQueue`] for as many of them as it likes.
//! It posts a [`WorkRequest`] and rings the doorbell, once for several requests if it likes.
//!
//! The **NIC** is run by one thread at a time, whichever has it in hand. A turn is:
//! [`advance`](Nic::advance) if a clock was read; a burst of [`packet`](Inbox::packet)s;
//! [`transmit`](Nic::transmit), which answers doorbells, sends what may be sent, and then what is
//! owed to peers. With the NIC in hand, [`post`](Nic::post) needs neither doorbell nor turn.
//! [`next_timeout`](Nic::next_timeout) says how long the thread may sleep.
//!
//! # What it does
//!
//! | [transport](Transport) | requests | delivery |
//! |---|---|---|
//! | reliable | send, write, read, compare-and-swap, fetch-and-add | once, in order, or both sides are told that it failed |
//! | unreliable | send, write | whole or not at all, complete when sent |
//! | datagram | send of one packet | to whichever queue pair it names, if it arrives |
//!
//! A message may bring an [attachment](Attachment) into the completion that it causes. Receives
//! come from a queue pair's own queue, or from one that several queue pairs
//! [share](SharedReceiveQueue). Queue pair 1 is the connection managers': its datagrams are handed
//! [out](Nic::management) to whoever runs the NIC, and taken [in](Nic::manage) from there. Peers
//! that fall silent are [asked for a sign of life](KeepAlive), and given up if they give none.
//!
//! Of reliable requests, sends and writes are carried out in the order in which they were posted,
//! except writes into memory that is [mapped](Nic::map), which may overtake sends. A read may see
//! the effect of requests that were posted after it, unless these are
//! [fenced](WorkRequest::fenced).
//!
//! # What it promises
//!
//! Every request posted to a reliable connection completes exactly once, in the order of its queue,
//! whatever the network does: with success when the peer has all of it, or with a [`Failure`] that
//! says why, and then everything behind it is [flushed](Failure::Flushed). A message is received
//! once, whole, in order, or not at all. Nothing that arrives can make the NIC panic, write outside
//! the memory that was granted, or keep more than its tables: those are allocated when a queue pair
//! is made and connected, and no message allocates anything.
//!
//! On a lossless device, the NIC keeps no timers and sends no positive acknowledgements: the device
//! reports how far the peer has taken its packets ([`Outbox::delivered`]). NAKs are sent all the
//! same. A turn there [collects](Nic::collect) what was delivered.
//!
//! A lossless device may deliver a packet that no queue pair takes: the queue pair does not exist,
//! or is of another service, or is not connected, or was connected anew since. Such a packet does
//! not pass for done: the NIC owes the link a delivery failure notice that names it, and the queue
//! pair that has it under way breaks as if nobody had answered. As on any device, a packet does not
//! say who sent it, and one of a forgotten connection counts as the present peer's if it bears just
//! the sequence number that is expected of that peer. Hence [first numbers](Nic::first_psn) can't
//! be guessed, and connections are ended on both sides.
//!
//! Nobody posts to a queue pair while it is reset or taken down: a [reset](Nic::reset) borrows both
//! of its ends, and it is not [taken down](Nic::drop_queue_pair) before they are dropped. So what
//! was accepted before is flushed like everything else.
//!
//! # Layers
//!
//! Each layer imports those above it in this table, and none below.
//!
//! | module | content |
//! |---|---|
//! | `identifiers`, `counters`, `ring` | identifiers, counters, the ring between two threads |
//! | `protection` | domains, rights, the table of memory keys, and mapped memory |
//! | `keep_alive` | how long peers may be silent, the table of peers, and jumps of the clock |
//! | `requests` | work requests and their memory, completions, failures, events, gather and scatter |
//! | `device` | what a device must do ([`Outbox`]), and what it tells ([`Inbox`]) |
//! | `congestion` | how much may be under way, by what is known of the path |
//! | `paths` | several routes for one connection, and those to be avoided |
//! | `selective` | what selective repeat knows of packets beyond a missing one |
//! | `config` | configurations, queue pair numbers, states and their transitions, errors |
//! | `queues` | the rings' ends: send, receive and completion queues, doorbells |
//! | `state` | the state of requesters, responders and queue pairs, and what all queue pairs share |
//! | `queue_pair` | transitions, breaking and flushing, scheduling, the peer and its probe |
//! | `requester` | sending, acknowledgements, retransmission, responses, completing |
//! | `responder` | sequence check, sends, writes, reads and atomic operations, acknowledgements |
//! | `adapter` | [`Nic`]: its tables, its turns, and what arrives |

mod adapter;
mod config;
mod congestion;
mod counters;
mod device;
mod identifiers;
mod keep_alive;
mod paths;
mod protection;
mod queue_pair;
mod queues;
mod requester;
mod requests;
mod responder;
#[allow(unsafe_code)]
mod ring;
mod selective;
mod state;

pub use crate::common::Seed;
pub use adapter::nic::Nic;
pub use config::connection::{Change, Connection, Sending};
pub use config::errors::{ChangeError, ResourceError};
pub use config::nic::{Config, Objects};
pub use config::numbering::{Numbering, NumberingError};
pub use config::queue_pair::{QueuePairConfig, Transport};
pub use config::queue_pair_state::State;
pub use counters::Counters;
pub use device::flow::Flow;
pub use device::inbox::Inbox;
pub use device::outbox::Outbox;
pub use device::receive::{receive_frame, receive_record};
pub use identifiers::{AddressId, CompletionQueueId, MappingId, SharedReceiveQueueId};
pub use keep_alive::limits::{KeepAlive, Silence};
pub use paths::MOST_PATHS;
pub use protection::registration::{KeyError, Registration, TableFull};
pub use protection::rights::{NotRights, Rights};
pub use protection::segment::{Domain, Lkey, Segment};
pub use queues::completion_queue::{CompletionGauge, CompletionQueue, Polled};
pub use queues::completion_slots::Notify;
pub use queues::ends::QueuePairEnds;
pub use queues::errors::{PostError, Refused};
pub use queues::receive_queue::ReceiveQueue;
pub use queues::send_queue::SendQueue;
pub use queues::shared_receive_queue::SharedReceiveQueue;
pub use requests::completion::{Completion, Done};
pub use requests::event::Event;
pub use requests::failure::{Cause, Failure};
pub use requests::memory::{Data, Inline, LONGEST_MESSAGE, MOST_INLINE, Memory};
pub use requests::work_request::{Attachment, Copied, Operation, ReceiveRequest, WorkRequest};
pub use responder::datagrams::DATAGRAM_HEADER;
pub use state::management::{Management, TooMany, Way};
