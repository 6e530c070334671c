//! Links between members by tagged messages.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::Name;
use doorbell_collectives::{Failure, GroupError, Links, MOST_MEMBERS};
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::control::{CONTROL_KIND, control, of_control};
use super::meeting::Meeting;
use crate::tagged::{Endpoint, Match, Message, Peer, Receiving};
use crate::tagged::{ReceiveError, SendError};
use doorbell_verbs::floor::locked;

/// How long a member that leaves waits for others to notice.
const LEAVING: Duration = Duration::from_secs(10);
/// How long a member whose group has failed waits for others to notice.
const TELLING: Duration = Duration::from_secs(1);
/// The longest text of a failure that members tell each other.
const LONGEST_TEXT: usize = 1024;

/// The kinds of messages about the end of a group. A receive takes both.
const FAILED: u8 = 2;
const LEFT: u8 = 3;
const ENDS: u64 = CONTROL_KIND & !(1 << 58);

/// Links to the other members of a group, by an endpoint of tagged messages. See
/// [`Group::join`](super::Group::join).
pub struct Members {
    endpoint: Endpoint,
    rank: usize,
    names: Arc<[Name]>,
    others: Arc<Others>,
    watches: Vec<AbortHandle>,
}

/// The connections to the other members, and the failure of the group if it has failed.
struct Others {
    rank: usize,
    /// The peers in the order of ranks, with none at this member's own place.
    peers: Vec<Option<Peer>>,
    failure: Mutex<Option<Failure>>,
    has_failed: Notify,
    /// Whether the others know of the failure.
    is_told: watch::Sender<bool>,
    /// Whether this member has told the other members of the group that it leaves.
    leaves: AtomicBool,
    /// The end of each member, as far as this member has heard of one.
    ends: Vec<watch::Sender<Option<End>>>,
}

/// The way in which a member's part in the group has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The member has left in order.
    Left,
    /// The member has failed, or has died.
    Failed,
}

/// Why a message was not sent to a member, or not received from it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The message was not sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The message was not received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The member has left the group in order, and so begins no further collective.
    #[error("it has left the group before this: all members must call the same collectives")]
    Left,
    /// The group has no link to a member of that rank.
    #[error("there is no link to member {rank}: it is this member, or none")]
    NoLink {
        /// The rank that was given.
        rank: usize,
    },
}

impl Members {
    /// Meets the other members, and waits as long for them as `patience` says.
    pub(super) async fn meet(
        patience: Duration,
        endpoint: Endpoint,
        rank: usize,
        names: &[Name],
    ) -> Result<Self, GroupError> {
        let size = names.len();
        if rank >= size || size > MOST_MEMBERS {
            return Err(GroupError::Rank { rank, size });
        }
        let meeting = Meeting::new(&endpoint, rank, names, patience);
        meeting.check()?;
        let peers = meeting.all().await?;
        let others = Arc::new(Others {
            rank,
            ends: peers.iter().map(|_| watch::Sender::new(None)).collect(),
            peers,
            failure: Mutex::default(),
            has_failed: Notify::new(),
            is_told: watch::Sender::new(false),
            leaves: AtomicBool::new(false),
        });
        let watches = others.watches(&endpoint);
        Ok(Self { endpoint, rank, names: names.into(), others, watches })
    }

    /// Tells the others that this member leaves, and waits until they know, and have got all that
    /// it has sent.
    pub(super) async fn leave(&self) {
        self.others.leave().await;
    }
}

impl Links for Members {
    type Error = LinkError;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.names.len()
    }

    fn send(
        &self,
        to: usize,
        tag: u64,
        body: Bytes,
    ) -> impl Future<Output = Result<(), LinkError>> + Send {
        let sending = self.others.peer(to).map(|peer| peer.send(tag, body));
        let others = self.others.clone();
        async move {
            let sent = sending?.await;
            if let Err(SendError::Gone { .. }) = sent {
                others.hears_of_end(to).await?;
            }
            Ok(sent?)
        }
    }

    fn receive(
        &self,
        from: usize,
        tag: u64,
        mask: u64,
    ) -> impl Future<Output = Result<(u64, Bytes), LinkError>> + Send {
        let peer = self.others.peer(from);
        let of = |peer| Match::bits(tag).mask(mask).from(peer);
        let receiving = peer.map(|peer| self.endpoint.receive(of(peer)));
        let others = self.others.clone();
        async move {
            let received = receiving?.await;
            if let Err(ReceiveError::PeerGone { .. }) = received {
                others.hears_of_end(from).await?;
            }
            let message = received?;
            Ok((message.bits, message.body))
        }
    }

    fn seen(&self, from: usize, tag: u64, mask: u64) -> Option<u64> {
        let of = Match::bits(tag).mask(mask).from(self.others.peer(from).ok()?);
        self.endpoint.probe(of).map(|message| message.bits)
    }

    fn name(&self, rank: usize) -> String {
        self.names.get(rank).map(Name::to_string).unwrap_or_default()
    }

    fn fail(&self, failure: Failure) -> impl Future<Output = ()> + Send {
        self.others.fail_and_tell(failure);
        let mut is_told = self.others.is_told.subscribe();
        async move {
            let _ = is_told.wait_for(|is_told| *is_told).await;
        }
    }

    async fn failed(&self) -> Failure {
        self.others.failed().await
    }
}

impl Others {
    fn peer(&self, rank: usize) -> Result<&Peer, LinkError> {
        let peer = self.peers.get(rank).and_then(Option::as_ref);
        peer.ok_or(LinkError::NoLink { rank })
    }

    fn failure(&self) -> Option<Failure> {
        locked(&self.failure).clone()
    }

    /// Waits until the end of a member was heard of with which nothing can be exchanged any more.
    /// The member may have said before that another has failed, and then the other is to blame. If
    /// the member has left in order, that is the error.
    async fn hears_of_end(&self, rank: usize) -> Result<(), LinkError> {
        let mut end = self.ends[rank].subscribe();
        match timeout(TELLING, end.wait_for(Option::is_some)).await {
            Ok(Ok(end)) if *end == Some(End::Left) => Err(LinkError::Left),
            _ => Ok(()),
        }
    }

    /// Has the group fail here. Returns whether it had not failed before.
    fn fail(&self, failure: Failure) -> bool {
        let mut known = locked(&self.failure);
        let is_first = known.is_none();
        known.get_or_insert(failure);
        drop(known);
        self.has_failed.notify_waiters();
        is_first
    }

    /// Has the group fail here and at the others.
    fn fail_and_tell(self: &Arc<Self>, failure: Failure) {
        let (bits, text) = (control(FAILED, failure.rank, 0), failure.why.clone());
        if !self.fail(failure) {
            return;
        }
        let told = self.tell(bits, text_of(&text));
        let others = self.clone();
        let tells = async move {
            let _ = timeout(TELLING, told).await;
            others.is_told.send_replace(true);
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(tells)),
            // The messages leave all the same, and nobody learns when they have come.
            Err(_) => drop(self.is_told.send_replace(true)),
        }
    }

    /// Sends a message to all others, and waits until they have taken it, or have gone.
    fn tell(&self, bits: u64, text: Bytes) -> impl Future<Output = ()> + Send + use<> {
        let peers = self.peers.iter().flatten();
        let sends = join_all(peers.map(|peer| peer.send_synchronously(bits, text.clone())));
        async move { drop(sends.await) }
    }

    /// Begins to wait for the end of each other member. A member says at most two things: that the
    /// group has failed, and that it leaves.
    fn watches(self: &Arc<Self>, endpoint: &Endpoint) -> Vec<AbortHandle> {
        let ends = Match::bits(control(FAILED, 0, 0)).mask(ENDS);
        let peers = self.peers.iter().enumerate();
        let watches = peers.filter_map(|(rank, peer)| {
            let ends = ends.from(peer.as_ref()?);
            let ends = [endpoint.receive(ends), endpoint.receive(ends)];
            Some(tokio::spawn(self.clone().watch(rank, ends)).abort_handle())
        });
        watches.collect()
    }

    /// Waits until a member leaves or dies. What the member says of a failure is taken, too.
    async fn watch(self: Arc<Self>, rank: usize, ends: [Receiving; 2]) {
        for mut end in ends {
            match poll_fn(|context| end.poll_in_background(context)).await {
                Ok(message) if message.bits & CONTROL_KIND == control(LEFT, 0, 0) => {
                    return self.has_ended(rank, End::Left);
                }
                Ok(message) => self.hears_of_failure(rank, &message),
                Err(ReceiveError::PeerGone { .. }) => {
                    let why = "it has gone: the connection to it has ended".into();
                    self.fail_and_tell(Failure { rank, why });
                }
                // The endpoint has ended, and so has this member.
                Err(_) => {}
            }
            self.has_ended(rank, End::Failed);
        }
    }

    /// Takes note of a member's end. The first one counts.
    fn has_ended(&self, rank: usize, end: End) {
        self.ends[rank].send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(end);
            is_first
        });
    }

    /// Has the group fail because of what the member `rank` has said.
    fn hears_of_failure(&self, rank: usize, message: &Message) {
        let (about, _) = of_control(message.bits);
        let about = if about < self.peers.len() { about } else { rank };
        let text = &message.body[..message.body.len().min(LONGEST_TEXT)];
        self.fail(Failure { rank: about, why: String::from_utf8_lossy(text).into() });
        self.is_told.send_replace(true);
    }

    /// Tells the others that no further collective is begun here, and waits until they have heard.
    /// Messages do not overtake each other: when that has come, all has come. Members whose group
    /// has failed may not hear any more, and are not waited for as long.
    async fn leave(self: &Arc<Self>) {
        self.leaves.store(true, Ordering::Relaxed);
        let told = self.tell(control(LEFT, self.rank, 0), Bytes::new());
        let has_failed = async {
            self.failed().await;
            sleep(TELLING).await;
        };
        tokio::select! {
            () = told => {}
            () = has_failed => {}
            () = sleep(LEAVING) => {}
        }
    }

    /// Waits until the group has failed.
    async fn failed(&self) -> Failure {
        loop {
            let failed = self.has_failed.notified();
            if let Some(failure) = self.failure() {
                return failure;
            }
            failed.await;
        }
    }
}

/// A member that is dropped without having left tells the others that it leaves, and
/// does not wait: they hear of that before they hear that its endpoint has ended. A member that
/// panics seems to have died, as one does whose process ends otherwise.
impl Drop for Members {
    fn drop(&mut self) {
        let others = &self.others;
        if !others.leaves.swap(true, Ordering::Relaxed) && !std::thread::panicking() {
            // Whoever has not heard of a failure yet would take this member's end for the cause.
            let (bits, text) = match others.failure() {
                Some(Failure { rank, why }) => (control(FAILED, rank, 0), text_of(&why)),
                None => (control(LEFT, self.rank, 0), Bytes::new()),
            };
            drop(others.tell(bits, text));
        }
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").field("rank", &self.rank).field("names", &self.names).finish()
    }
}

/// Returns the text of a failure as members tell each other.
fn text_of(why: &str) -> Bytes {
    let end = why.floor_char_boundary(LONGEST_TEXT);
    Bytes::copy_from_slice(&why.as_bytes()[..end])
}
