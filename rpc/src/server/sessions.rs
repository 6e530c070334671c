//! The clients of a server, and which calls of each have begun.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use doorbell_am::Peer;
use futures_util::future::AbortHandle;
use tokio::time::Instant;

use crate::status::Status;

/// How many of a client's latest calls a server remembers.
pub const REMEMBERED: u64 = 4096;

/// The sessions of a server: one for each client, by its number. A session outlives the client's
/// connection by a time, in which the client may come again.
#[derive(Default)]
pub struct Sessions {
    by_number: HashMap<u64, Session>,
    most: usize,
    remember: Duration,
}

struct Session {
    /// The number that the client has drawn.
    client: u64,
    peer: Peer,
    begun: Begun,
    /// The calls whose handlers wait for something, and can be stopped.
    waiting: HashMap<u64, (Peer, AbortHandle)>,
    /// Since when the client's connection has been gone, as far as the server was told.
    gone_since: Option<Instant>,
}

impl Sessions {
    /// No sessions yet, of which there may be so many; each is remembered for a time after its
    /// connection has gone.
    pub fn new(most: usize, remember: Duration) -> Self {
        Self { by_number: HashMap::new(), most, remember }
    }

    /// Opens a session of the number `fresh` for a client, or goes on with the one that the client
    /// had. Returns the session's number; `None` if there are as many sessions as may be.
    pub fn open(&mut self, client: u64, before: u64, fresh: u64, peer: Peer) -> Option<u64> {
        if let Some(session) = self.by_number.get_mut(&before)
            && session.client == client
        {
            session.peer = peer;
            session.gone_since = None;
            return Some(before);
        }
        if self.by_number.len() >= self.most {
            self.forget_longest_gone();
        }
        if self.by_number.len() >= self.most || fresh == 0 || self.by_number.contains_key(&fresh) {
            return None;
        }
        let (begun, waiting) = (Begun::default(), HashMap::new());
        let session = Session { client, peer, begun, waiting, gone_since: None };
        self.by_number.insert(fresh, session);
        Some(fresh)
    }

    /// Notes that a call begins, unless it may begin `again` without harm.
    ///
    /// # Errors
    /// When there is no such session, or the call has begun before, or may have.
    pub fn begin(&mut self, number: u64, call: u64, again: bool) -> Result<(), Status> {
        let Some(session) = self.by_number.get_mut(&number) else {
            return Err(Status::unavailable(
                "the server knows no such session: it has forgotten the client, which has to connect \
                 again",
            ));
        };
        if again || session.begun.insert(call) {
            return Ok(());
        }
        Err(Status::aborted(format!(
            "call {call} has begun on an earlier connection, and its answer was lost; it does not run \
             again because its method is not marked idempotent"
        )))
    }

    /// Notes how a call whose handler waits for something can be stopped.
    pub fn waits(&mut self, number: u64, call: u64, peer: &Peer, stop: AbortHandle) {
        match self.by_number.get_mut(&number) {
            Some(_) if peer.ending().is_some() => stop.abort(),
            Some(session) => _ = session.waiting.insert(call, (peer.clone(), stop)),
            None => stop.abort(),
        }
    }

    /// Stops all handlers that wait on behalf of a connection that has ended, and notes when that
    /// was.
    pub fn gone(&mut self, peer: &Peer, now: Instant) {
        for session in self.by_number.values_mut() {
            if session.peer == *peer {
                session.gone_since.get_or_insert(now);
            }
            let over = |_: &u64, (of, _): &mut (Peer, AbortHandle)| *of == *peer;
            session.waiting.extract_if(over).for_each(|(_, (_, stop))| stop.abort());
        }
    }

    /// Stops all handlers that wait, forgets all sessions, and opens none any more.
    pub fn close(&mut self) {
        self.most = 0;
        let waiting = self.by_number.drain().flat_map(|(_, session)| session.waiting);
        waiting.for_each(|(_, (_, stop))| stop.abort());
    }

    /// The connections of sessions that have ended.
    pub fn peers_gone(&self) -> Vec<Peer> {
        let peers = self.by_number.values().map(|session| &session.peer);
        peers.filter(|peer| peer.ending().is_some()).cloned().collect()
    }

    /// Notes that a call is over whose handler has waited.
    pub fn ends(&mut self, number: u64, call: u64) {
        if let Some(session) = self.by_number.get_mut(&number) {
            session.waiting.remove(&call);
        }
    }

    /// Stops the handler of a call that its caller has given up.
    pub fn cancel(&mut self, number: u64, call: u64) {
        let session = self.by_number.get_mut(&number);
        if let Some((_, stop)) = session.and_then(|session| session.waiting.remove(&call)) {
            stop.abort();
        }
    }

    /// Forgets the sessions whose connections have been gone for long enough.
    pub fn sweep(&mut self, now: Instant) {
        let remember = self.remember;
        self.by_number.retain(|_, session| {
            if session.peer.ending().is_none() {
                return true;
            }
            let since = *session.gone_since.get_or_insert(now);
            now.saturating_duration_since(since) < remember
        });
    }

    /// Whether there is a session of a number.
    pub fn contains(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// How many sessions there are, with those whose connections have gone.
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Forgets the session whose connection has been gone for longest, if any has.
    fn forget_longest_gone(&mut self) {
        let now = Instant::now();
        let gone = self.by_number.iter().filter(|(_, session)| session.peer.ending().is_some());
        let longest = gone.min_by_key(|(_, session)| session.gone_since.unwrap_or(now));
        if let Some(number) = longest.map(|(number, _)| *number) {
            self.by_number.remove(&number);
        }
    }
}

/// Which of a client's calls have begun: the latest [`REMEMBERED`] of them exactly. Earlier ones
/// are taken to have begun.
#[derive(Default)]
struct Begun {
    /// The number of the first call of the first word.
    first: u64,
    /// A bit for each call.
    words: VecDeque<u64>,
}

impl Begun {
    /// Adds a call. Returns whether it is new.
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
        let mut begun = Begun::default();
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
        let mut begun = Begun::default();
        assert!(begun.insert(5));
        assert!(begun.insert(1_000_000_007));
        assert!(!begun.insert(6));
        assert!(begun.insert(1_000_000_006));
        assert!(!begun.insert(1_000_000_007));
        assert!(begun.words.len() as u64 <= REMEMBERED / 64);
        assert!(begun.insert(u64::MAX) && !begun.insert(u64::MAX));
    }
}
