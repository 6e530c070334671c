//! Sessions: the clients that a server knows, and which calls of each client have begun.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::Peer;
use futures_util::future::AbortHandle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::bulk::Share;
use crate::caller::Caller;
use crate::hasher::ByNumber;
use crate::status::Status;

/// How many of a client's latest calls a server remembers, to refuse running one of them twice.
pub const REMEMBERED: u64 = 4096;

/// The sessions of a server, by their numbers: one session for each client. A session outlives its
/// client's connection for a while, so that the client may reconnect and go on with the session.
#[derive(Default)]
pub struct Sessions {
    by_number: HashMap<u64, Session, ByNumber>,
    /// The number of the session of each connection. A connection has one session at most.
    by_peer: HashMap<Peer, u64>,
    /// The ticket of the latest handler that has waited. Tickets count up from one.
    tickets: u64,
    /// The number of the latest call that has begun or session that was opened. They count up from
    /// one.
    latest: u64,
    /// What `latest` was at the last sweep, and at the sweep before that.
    at_sweeps: [u64; 2],
    sweeps: u64,
    most: usize,
    remember: Duration,
    /// The most handlers of one client's calls that may wait for something.
    most_waiting: usize,
    /// Whether all handlers were stopped, so that none may wait any more.
    is_stopped: bool,
}

struct Session {
    /// The number that the client has drawn at random, by which the server recognises the client.
    client: u64,
    peer: Peer,
    /// Who is at the other end of the connection.
    caller: Caller,
    begun: RecentCalls,
    /// The calls that the client has given up. A client may give a call up before its handler
    /// waits.
    given_up: RecentCalls,
    /// The calls whose handlers wait for something, and how each is stopped.
    waiting: HashMap<u64, Waiter>,
    /// The client's share of the memory for long bodies.
    share: Share,
    /// Closed when the client sends no more calls, because it knows that the server leaves.
    left: Arc<Semaphore>,
    /// When the server learned that the client's connection had ended; `None` while it has not.
    gone_since: Option<Instant>,
    /// What [`Sessions::latest`] was when the latest call of the client began.
    latest: u64,
    /// Shared by the calls that are under way, which are counted by that.
    under_way: UnderWay,
}

/// Kept by a call for as long as it is under way, so that its client does not count as idle.
pub type UnderWay = Arc<()>;

/// A call that may begin.
pub struct Begun {
    pub caller: Caller,
    pub under_way: UnderWay,
}

/// A handler that waits for something, and can be stopped.
struct Waiter {
    /// The connection over which the call came.
    peer: Peer,
    stop: AbortHandle,
    /// Tells this handler from another of the same call, which the client may have sent again.
    ticket: u64,
}

impl Sessions {
    /// Makes an empty table of at most `most` sessions. Each session is remembered for the time
    /// `remember` after its connection has ended, and may have `most_waiting` handlers that wait.
    pub fn new(most: usize, remember: Duration, most_waiting: usize) -> Self {
        Self { most, remember, most_waiting, ..Self::default() }
    }

    /// Opens a session for a client that has connected, and returns its number. A client that names
    /// its session `before` goes on with that session; another client gets a new session with the
    /// number `fresh` and the given share of the memory for long bodies. A connection that has a
    /// session keeps it, however often its client asks.
    ///
    /// Returns `None` if the server has as many sessions as it may have.
    pub fn open(
        &mut self,
        client: u64,
        before: u64,
        fresh: u64,
        (peer, caller): (Peer, Caller),
        share: Share,
    ) -> Option<u64> {
        if let Some(&number) = self.by_peer.get(&peer) {
            return Some(number);
        }
        if let Some(session) = self.by_number.get_mut(&before)
            && session.client == client
        {
            self.by_peer.remove(&session.peer);
            self.by_peer.insert(peer.clone(), before);
            session.peer = peer;
            session.caller = caller;
            session.left = Arc::new(Semaphore::new(0));
            session.gone_since = None;
            self.latest += 1;
            session.latest = self.latest;
            return Some(before);
        }
        if self.by_number.len() >= self.most {
            self.forget_longest_gone();
        }
        if self.by_number.len() >= self.most || fresh == 0 || self.by_number.contains_key(&fresh) {
            return None;
        }
        let ([begun, given_up], waiting) = (Default::default(), HashMap::new());
        self.by_peer.insert(peer.clone(), fresh);
        self.latest += 1;
        let session = Session {
            client,
            peer,
            caller,
            begun,
            given_up,
            waiting,
            share,
            left: Arc::new(Semaphore::new(0)),
            gone_since: None,
            latest: self.latest,
            under_way: UnderWay::default(),
        };
        self.by_number.insert(fresh, session);
        Some(fresh)
    }

    /// Notes that a call begins, and returns who calls, and what the call keeps while it is under
    /// way. With `again`, the call is idempotent and may begin more than once.
    ///
    /// # Errors
    /// When there is no session with this number, when too many handlers of the client wait, or
    /// when the call has begun before or is too old to be remembered.
    pub fn begin(&mut self, number: u64, call: u64, again: bool) -> Result<Begun, Status> {
        let Some(session) = self.by_number.get_mut(&number) else {
            return Err(Status::unavailable(
                "the server knows no such session: it has forgotten the client, which has to connect \
                 again",
            ));
        };
        if session.waiting.len() >= self.most_waiting {
            return Err(Status::resource_exhausted(format!(
                "{} handlers of calls of this client wait for something already, which is the \
                 server's limit for one client: call again later, or raise its \
                 `most_waiting_per_client`",
                self.most_waiting
            )));
        }
        if again || session.begun.insert(call) {
            self.latest += 1;
            session.latest = self.latest;
            return Ok(Begun {
                caller: session.caller.clone(),
                under_way: session.under_way.clone(),
            });
        }
        if !session.begun.contains(call) {
            return Err(Status::aborted(format!(
                "call {call} is older than the {REMEMBERED} latest calls of this client, and may have \
                 begun on an earlier connection; it does not run again because its method is not marked \
                 idempotent"
            )));
        }
        Err(Status::aborted(format!(
            "call {call} has begun on an earlier connection, and its answer was lost; it does not run \
             again because its method is not marked idempotent"
        )))
    }

    /// Notes that the handler of a call waits, and that `stop` stops it. A handler of the same call
    /// that waits already is stopped, because the client has sent the call again. Returns a ticket
    /// to pass to [`ends`](Self::ends) when the handler has ended.
    pub fn waits(&mut self, number: u64, call: u64, peer: &Peer, stop: AbortHandle) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        match self.by_number.get_mut(&number) {
            Some(session)
                if !self.is_stopped
                    && peer.ending().is_none()
                    && !session.given_up.contains(call) =>
            {
                let waiter = Waiter { peer: peer.clone(), stop, ticket };
                let before = session.waiting.insert(call, waiter);
                before.into_iter().for_each(|other| other.stop.abort());
            }
            _ => stop.abort(),
        }
        ticket
    }

    /// The session's share of the memory for long bodies, if there is a session with this number.
    pub fn share_of(&self, number: u64) -> Option<Share> {
        self.by_number.get(&number).map(|session| session.share.clone())
    }

    /// Stops all handlers that wait for clients whose connections have ended, and notes in their
    /// sessions that this was at the time `now`.
    pub fn gone(&mut self, is_gone: impl Fn(&Peer) -> bool, now: Instant) {
        for session in self.by_number.values_mut() {
            if is_gone(&session.peer) {
                session.gone_since.get_or_insert(now);
                session.left.close();
            }
            let over = |_: &u64, waiter: &mut Waiter| is_gone(&waiter.peer);
            session.waiting.extract_if(over).for_each(|(_, waiter)| waiter.stop.abort());
        }
    }

    /// Stops all handlers that wait, forgets all sessions, and refuses to open others.
    pub fn close(&mut self) {
        self.most = 0;
        self.by_peer.clear();
        let waiting = self.by_number.drain().flat_map(|(_, session)| session.waiting);
        waiting.for_each(|(_, waiter)| waiter.stop.abort());
    }

    /// Stops all handlers that wait, and each that would wait from now on.
    pub fn stop_all(&mut self) {
        self.is_stopped = true;
        for session in self.by_number.values_mut() {
            session.waiting.drain().for_each(|(_, waiter)| waiter.stop.abort());
        }
    }

    /// Notes that a client sends no more calls over the connection of its session.
    pub fn leaves(&mut self, number: u64) {
        if let Some(session) = self.by_number.get(&number) {
            session.left.close();
        }
    }

    /// The semaphore that is closed when the client of a session has left; `None` if it has gone.
    pub fn left(&self, number: u64) -> Option<Arc<Semaphore>> {
        let session = self.by_number.get(&number);
        let session = session.filter(|session| session.peer.ending().is_none());
        session.map(|session| session.left.clone())
    }

    /// The numbers and the connections of all sessions whose connections have not ended.
    pub fn connected(&self) -> Vec<(u64, Peer)> {
        let sessions = self.by_number.iter();
        let sessions = sessions.filter(|(_, session)| session.peer.ending().is_none());
        sessions.map(|(&number, session)| (number, session.peer.clone())).collect()
    }

    /// The connections of all sessions whose connections have ended.
    pub fn peers_gone(&self) -> Vec<Peer> {
        let peers = self.by_number.values().map(|session| &session.peer);
        peers.filter(|peer| peer.ending().is_some()).cloned().collect()
    }

    /// Notes that a handler which has waited is over. The ticket is the one that
    /// [`waits`](Self::waits) returned for the handler.
    pub fn ends(&mut self, number: u64, call: u64, ticket: u64) {
        if let Some(session) = self.by_number.get_mut(&number)
            && session.waiting.get(&call).is_some_and(|waiter| waiter.ticket == ticket)
        {
            session.waiting.remove(&call);
        }
    }

    /// Stops the handler of a call that its caller has given up, now or as soon as it waits.
    pub fn cancel(&mut self, number: u64, call: u64) {
        let Some(session) = self.by_number.get_mut(&number) else { return };
        session.given_up.insert(call);
        if let Some(waiter) = session.waiting.remove(&call) {
            waiter.stop.abort();
        }
    }

    /// Forgets all sessions whose connections ended longer ago than sessions are remembered.
    pub fn sweep(&mut self, now: Instant) {
        self.at_sweeps = [self.latest, self.at_sweeps[0]];
        self.sweeps += 1;
        let remember = self.remember;
        self.by_number.retain(|_, session| {
            if session.peer.ending().is_none() {
                return true;
            }
            let since = *session.gone_since.get_or_insert(now);
            let stays = now.saturating_duration_since(since) < remember;
            if !stays {
                self.by_peer.remove(&session.peer);
            }
            stays
        });
    }

    /// Returns whether a session has this number and a client that is connected.
    pub fn is_connected(&self, number: u64) -> bool {
        let session = self.by_number.get(&number);
        session.is_some_and(|session| session.peer.ending().is_none())
    }

    /// Returns how often the sessions were swept.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Returns since when a client is idle, as a number that is smaller the longer that is ago;
    /// `None` if it has a call under way, or one has begun since the last sweep but one. A client
    /// without a session is idle if it is `silent`.
    pub fn idle_since(&self, peer: &Peer, silent: bool) -> Option<u64> {
        let number = self.by_peer.get(peer);
        let Some(session) = number.and_then(|number| self.by_number.get(number)) else {
            return silent.then_some(0);
        };
        let is_busy = Arc::strong_count(&session.under_way) > 1;
        let is_idle = !is_busy && session.latest <= self.at_sweeps[1];
        is_idle.then_some(session.latest)
    }

    /// Ends the connection of a client, which is idle, to make room for others. The session is
    /// remembered.
    ///
    /// No call begins between the look whether the client is idle and the end, since `self` is
    /// locked meanwhile, and none over this connection afterwards.
    pub fn gives_up(&mut self, peer: &Peer) {
        peer.give_up();
    }

    /// Returns whether a session has this number.
    pub fn contains(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// The number of sessions, counting those whose connections have ended.
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Forgets the session whose connection ended longest ago, if any connection has ended.
    fn forget_longest_gone(&mut self) {
        let now = Instant::now();
        let gone = self.by_number.iter().filter(|(_, session)| session.peer.ending().is_some());
        let longest = gone.min_by_key(|(_, session)| session.gone_since.unwrap_or(now));
        if let Some(number) = longest.map(|(number, _)| *number)
            && let Some(session) = self.by_number.remove(&number)
        {
            self.by_peer.remove(&session.peer);
        }
    }
}

/// A set of a client's latest calls, by their numbers. Of the [`REMEMBERED`] calls up to the
/// greatest number that was added, the set knows exactly which were added; older calls are
/// forgotten.
#[derive(Default)]
struct RecentCalls {
    /// The number of the call that the first bit of the first word stands for.
    first: u64,
    /// A bit for each call that tells whether it was added, 64 calls in a word.
    words: VecDeque<u64>,
}

impl RecentCalls {
    /// Whether a call was added, and is not forgotten.
    fn contains(&self, call: u64) -> bool {
        let Some(at) = call.checked_sub(self.first) else { return false };
        let word = usize::try_from(at / 64).ok().and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (call % 64) & 1 == 1)
    }

    /// Adds a call to the set. Returns whether the call is new; a call that may have been forgotten
    /// counts as old.
    fn insert(&mut self, call: u64) -> bool {
        if call < self.first {
            return false;
        }
        let mut word = (call - self.first) / 64;
        let most = REMEMBERED / 64;
        if word >= most {
            let skipped = word - (most - 1);
            self.first += 64 * skipped;
            let dropped = usize::try_from(skipped).unwrap_or(usize::MAX).min(self.words.len());
            self.words.drain(..dropped);
            word = most - 1;
        }
        let word = word as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (call % 64);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_begins_once_however_calls_overtake_each_other() {
        let mut begun = RecentCalls::default();
        for call in [3, 1, 2, 70, 64, 0] {
            assert!(begun.insert(call), "{call}");
        }
        for call in 0..4 {
            assert!(!begun.insert(call), "{call}");
        }
        assert!(begun.insert(65) && !begun.insert(64) && !begun.insert(70));
    }

    #[test]
    fn calls_that_are_too_long_ago_to_be_remembered_do_not_begin() {
        let mut begun = RecentCalls::default();
        assert!(begun.insert(5));
        assert!(begun.insert(1_000_000_007));
        assert!(!begun.insert(6));
        assert!(begun.insert(1_000_000_006));
        assert!(!begun.insert(1_000_000_007));
        assert!(begun.words.len() as u64 <= REMEMBERED / 64);
        assert!(begun.contains(1_000_000_007) && !begun.contains(1_000_000_005));
        assert!(!begun.contains(5) && !begun.contains(u64::MAX));
        assert!(begun.insert(u64::MAX) && !begun.insert(u64::MAX));
    }
}
