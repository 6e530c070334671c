//! Endpoints: opened on a device, connected, sent to, and received from.
//!
//! Each file imports from those above it in this list, and from none below.
//!
//! | file | what it is |
//! |---|---|
//! | `places` | the numbers of receives, and which have their outcomes |
//! | `arrived`, `partial` | messages that have come, whole or in part |
//! | `receives` | the outcomes of receives, until programs take them |
//! | `frame` | what goes to a peer, as packets |
//! | `rails` | several connections to one peer |
//! | `departures` | which messages have left |
//! | `due` | what handlers have to send, who may not |
//! | `lane` | the way to one peer, where frames wait for credits |
//! | `closing_state` | the tasks that close an endpoint, and the peers that were lost |
//! | `effects` | what follows from an event, and is done without the state's lock |
//! | `state` | the receives, the peers, and what goes to each |
//! | `core` | what programs do that needs no device: they receive, cancel, probe |
//! | `shared` | what handles and handlers share: the core, the devices, and what is sent |
//! | `pulling`, `receiving`, `collecting`, `greeting`, `ending` | what peers do |
//! | `handlers` | the handlers of Active Messages by which peers do that |
//! | `waiting`, `send`, `peer`, `message`, `room`, `receive` | what programs hold |
//! | `closing` | endpoints that end in order |
//! | `builder`, and this file | endpoints, as programs see them |

mod arrived;
mod builder;
mod closing;
mod closing_state;
mod collecting;
mod core;
mod departures;
mod due;
mod effects;
mod ending;
mod frame;
mod greeting;
mod handlers;
mod lane;
mod message;
mod partial;
mod peer;
mod places;
mod pulling;
mod rails;
mod receive;
mod receives;
mod receiving;
mod room;
mod send;
mod shared;
mod state;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_am::{self as am, Name, NameError};
use doorbell_verbs::Nic;
use tokio::task::AbortHandle;

pub use builder::EndpointBuilder;
pub use message::{Message, Probed, Received};
pub use peer::Peer;
pub use receive::{Match, Receiving};
pub use room::{Anywhere, Room};
pub use send::Sending;
pub use waiting::{Request, wait_any};

use crate::tagged::error::{CloseError, ConnectError};
use shared::Shared;

/// An endpoint of tagged messages: receives, and connections to others.
///
/// Clones are handles to the same endpoint. A program that is to end [closes](Self::close) the
/// endpoint, which waits until peers have what was sent to them. When the last handle is dropped
/// instead, or the runtime ends, messages whose sends are done go on to peers in the background, for
/// [a second](doorbell_am::EndpointConfig::linger) at most; others are lost.
#[derive(Clone)]
pub struct Endpoint(Arc<Open>);

struct Open {
    /// The endpoint of Active Messages on each device.
    endpoints: Vec<am::Endpoint>,
    shared: Arc<Shared>,
    /// The tasks that watch the ends of peers, and accept connections for long messages.
    tasks: Vec<AbortHandle>,
    /// Dropped behind the endpoints of Active Messages, which go on to send what was accepted.
    _own_nics: OwnNics,
}

/// The NICs that were opened for an endpoint, and are closed with it. Tasks that are being stopped
/// have handles to them until their runtime drops them.
struct OwnNics(Vec<Nic>);

impl Drop for OwnNics {
    fn drop(&mut self) {
        self.0.iter().for_each(Nic::close_blocking);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.shared.close();
    }
}

/// The counts of what an endpoint has seen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// The messages from peers that break the rules, and were dropped.
    pub malformed: u64,
}

impl Endpoint {
    /// Returns the name by which others connect, by the first device if there are several.
    pub fn name(&self) -> &Name {
        self.0.endpoints[0].name()
    }

    /// Returns the names of the endpoint, one for each of its devices.
    pub fn names(&self) -> Vec<Name> {
        self.0.endpoints.iter().map(|endpoint| endpoint.name().clone()).collect()
    }

    /// Connects to another endpoint. If there is a connection between the two already, whichever
    /// side has made it, the peer is the same.
    ///
    /// # Errors
    /// When the name is none, nobody answers by it in time, or who answers is no endpoint of
    /// messages.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, ConnectError>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let name = name.try_into().map_err(Into::into)?;
        self.connect_all(&[name]).await
    }

    /// Connects to an endpoint on several devices by [its names](Self::names), of which each is
    /// connected to by the device of this endpoint at the same place. Messages go by as many
    /// devices as both endpoints have, and long ones by all of them at once. If all but one fail,
    /// nothing is lost.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_all(&self, names: &[Name]) -> Result<Peer, ConnectError> {
        let mut links = Vec::new();
        for (endpoint, name) in self.0.endpoints.iter().zip(names) {
            links.push((endpoint.connect(name.clone()).await?, name.to_string()));
        }
        if links.is_empty() {
            return Err(ConnectError::NoName);
        }
        let source = self.0.shared.greet(&links).await?;
        Ok(Peer::new(self.0.shared.core.clone(), source))
    }

    /// Posts a receive of a message of any length, up to the
    /// [longest](EndpointBuilder::longest).
    pub fn receive(&self, of: Match) -> Receiving {
        self.receive_at_most(usize::MAX, of)
    }

    /// Posts a receive of a message of at most `room` bytes. If a longer one matches, the receive
    /// fails with both lengths, and the message is lost when the program takes that error, as MPI
    /// has it.
    pub fn receive_at_most(&self, room: usize, of: Match) -> Receiving {
        let most = room.min(self.0.shared.limits.longest);
        Receiving::post(&self.0.shared.core, of, most, Anywhere)
    }

    /// Posts a receive into [memory of the program](Room), which the outcome gives back. A message
    /// that is longer than the memory is lost, as with [`receive_at_most`](Self::receive_at_most).
    ///
    /// ```
    /// use bytes::BytesMut;
    /// use doorbell_messages::{Endpoint, Match, RegionPart};
    /// use doorbell_verbs::Region;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// let far = Endpoint::open("shm").await?;
    /// let near = Endpoint::open("shm").await?;
    /// let peer = near.connect(far.name()).await?;
    ///
    /// // A slice is filled from its beginning.
    /// peer.send(7, "seven").await?;
    /// let mut buffer = [0; 1500];
    /// let len = far.receive_into(&mut buffer[..], Match::exactly(7)).await?.len;
    /// assert_eq!(&buffer[..len], b"seven");
    ///
    /// // A body is scattered into pieces.
    /// peer.send(8, "headpayload").await?;
    /// let pieces = [4, 100].map(BytesMut::with_capacity);
    /// let received = far.receive_into(pieces, Match::exactly(8)).await?;
    /// assert_eq!(received.into, ["head", "payload"]);
    ///
    /// // A long body comes straight into a region, which may be registered for peers, too.
    /// let memory = Region::new(2 << 20);
    /// let lower_half = RegionPart::new(&memory, ..1 << 20)?;
    /// let (sent, received) = tokio::join!(
    ///     peer.send(9, vec![9; 1 << 20]),
    ///     far.receive_into(lower_half, Match::exactly(9)),
    /// );
    /// sent?;
    /// assert_eq!(received?.len, 1 << 20);
    /// assert_eq!(memory.load(0)?, u64::from_ne_bytes([9; 8]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// While the receive is posted, a region may be written at any time; once the receive is dropped,
    /// it is not written any more. A body that was coming comes anew then, for another receive.
    pub fn receive_into<R: Room>(&self, room: R, of: Match) -> Receiving<R> {
        let most = room.room();
        Receiving::post(&self.0.shared.core, of, most, room)
    }

    /// Looks for a message that a receive would take now, and leaves it. A message that its sender
    /// holds, because the window is full, is seen after some time by a program that probes again
    /// and again.
    pub fn probe(&self, of: Match) -> Option<Probed> {
        let core = &self.0.shared.core;
        let (bits, len, source) = core.probe(of.pattern())?;
        Some(Probed { bits, len, from: Peer::new(core.clone(), source) })
    }

    /// Closes the endpoint, once all messages that were sent before have left, and peers have them.
    /// That includes messages whose futures were dropped. A receiver keeps messages that have come,
    /// and may receive them behind the sender's end.
    ///
    /// # Errors
    /// When a peer ends the connection before it has everything, dies, or does not take everything
    /// within the [patience](doorbell_am::EndpointConfig::patience) of the endpoint of Active
    /// Messages below: a message longer than the receiver's window needs a receive there. The
    /// endpoint is closed all the same, and the error names the peers.
    ///
    /// If the future is dropped, the endpoint stays open, and takes no new peers.
    pub async fn close(&self) -> Result<(), CloseError> {
        let closed = closing::close_in_order(&self.0.shared, &self.0.endpoints).await;
        self.0.shared.close();
        closed
    }

    /// Returns the counts of what the endpoint has seen.
    pub fn statistics(&self) -> Statistics {
        Statistics { malformed: self.0.shared.malformed.load(Ordering::Relaxed) }
    }

    /// Returns the bundle of endpoints that the endpoint belongs to, which a program polls that
    /// decides itself when messages are taken in, and on which it opens further endpoints.
    pub fn bundle(&self) -> am::Bundle {
        self.0.endpoints[0].bundle()
    }

    /// Returns the bundles that the endpoint belongs to, one for each of its devices.
    pub fn bundles(&self) -> Vec<am::Bundle> {
        self.0.endpoints.iter().map(am::Endpoint::bundle).collect()
    }

    /// Returns the NIC by which the endpoint sends and receives, for its statistics.
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        self.0.endpoints[0].nic()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name().to_string()).finish_non_exhaustive()
    }
}
