//! Challenges: random numbers that are posed to whoever asks for a connection.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use doorbell_verbs::floor::locked;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio::time::Instant;

use super::statement::{Nonce, drawn, half};

/// How long an epoch lasts. A challenge is good in the epoch in which it was posed and in the next.
const EPOCH: Duration = Duration::from_secs(30);

/// The most challenges that are answered in an epoch. With the next, another epoch begins.
const MOST_ANSWERED: usize = 4096;

/// The challenges that one side poses, each of which is answered once at most.
///
/// A challenge follows from a secret, and from the number that it is posed to. So nothing is kept
/// of those who ask and do not answer, however many there are. What is kept are the challenges that
/// were answered in two epochs: up to 8192, of sixteen bytes each.
#[derive(Debug)]
pub struct Challenges(Mutex<State>);

#[derive(Debug)]
struct State {
    now: Epoch,
    before: Epoch,
    /// Whether the number of the epoch that goes on is odd.
    odd: bool,
    since: Instant,
}

struct Epoch {
    secret: [u8; 32],
    answered: HashSet<Nonce>,
}

impl std::fmt::Debug for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epoch").field("answered", &self.answered.len()).finish_non_exhaustive()
    }
}

/// A challenge that was posed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Posed {
    /// Whether the number of the epoch in which the challenge was posed is odd. The answer repeats
    /// that.
    pub odd: bool,
    /// The number that the answer has to be about.
    pub nonce: Nonce,
}

impl Epoch {
    fn new() -> Self {
        Self { secret: drawn(), answered: HashSet::new() }
    }

    /// The number that is posed to another.
    fn posed_to(&self, theirs: Nonce) -> Nonce {
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret);
        Nonce(half(mac.expect("a key of any length will do").chain_update(theirs.0)))
    }
}

impl Default for Challenges {
    fn default() -> Self {
        let (now, before) = (Epoch::new(), Epoch::new());
        Self(Mutex::new(State { now, before, odd: false, since: Instant::now() }))
    }
}

impl Challenges {
    /// Poses a challenge to whoever has drawn a number.
    pub fn pose(&self, theirs: Nonce) -> Posed {
        let state = self.state();
        Posed { odd: state.odd, nonce: state.now.posed_to(theirs) }
    }

    /// Returns the number that was posed in an epoch to whoever had drawn a number; `None` if that
    /// is too long ago, or was answered.
    pub fn posed(&self, odd: bool, theirs: Nonce) -> Option<Nonce> {
        let mut state = self.state();
        let epoch = state.epoch(odd);
        (!epoch.answered.contains(&theirs)).then(|| epoch.posed_to(theirs))
    }

    /// Notes that the challenge was answered that was posed to a number. Returns `false` if it was
    /// answered before, by another connection: that was heard and repeated by somebody.
    #[must_use]
    pub fn is_answered_first(&self, odd: bool, theirs: Nonce) -> bool {
        let mut state = locked(&self.0);
        let first = state.epoch(odd).answered.insert(theirs);
        if state.now.answered.len() >= MOST_ANSWERED {
            state.begin_epoch();
        }
        first
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = locked(&self.0);
        let age = state.since.elapsed();
        state.go_on(age);
        state
    }
}

impl State {
    /// Begins another epoch if the one that goes on has lasted for so long.
    fn go_on(&mut self, age: Duration) {
        if age >= EPOCH {
            self.begin_epoch();
        }
        // Nobody has asked for as long as two epochs last.
        if age >= 2 * EPOCH {
            self.begin_epoch();
        }
    }

    fn begin_epoch(&mut self) {
        self.before = std::mem::replace(&mut self.now, Epoch::new());
        self.odd = !self.odd;
        self.since = Instant::now();
    }

    /// The epoch of an odd or of an even number: the one that goes on, or the one before.
    fn epoch(&mut self, odd: bool) -> &mut Epoch {
        if odd == self.odd { &mut self.now } else { &mut self.before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_answered_once_and_by_whom_it_was_posed_to() {
        let challenges = Challenges::default();
        let (one, other) = (Nonce::draw(), Nonce::draw());
        let posed = challenges.pose(one);
        assert_ne!(posed.nonce, challenges.pose(other).nonce);
        assert_ne!(Some(posed.nonce), challenges.posed(!posed.odd, one), "in another epoch");
        assert_eq!(challenges.posed(posed.odd, one), Some(posed.nonce));
        assert!(challenges.is_answered_first(posed.odd, one));
        assert_eq!(challenges.posed(posed.odd, one), None);
        assert!(!challenges.is_answered_first(posed.odd, one));
        assert!(challenges.posed(posed.odd, other).is_some());
    }

    #[test]
    fn a_challenge_is_good_for_at_least_an_epoch_and_less_than_two() {
        let challenges = Challenges::default();
        let theirs = Nonce::draw();
        let ages = |age| locked(&challenges.0).go_on(age);
        let posed = challenges.pose(theirs);
        ages(EPOCH);
        assert_eq!(challenges.posed(posed.odd, theirs), Some(posed.nonce));
        ages(EPOCH);
        assert_ne!(challenges.posed(posed.odd, theirs), Some(posed.nonce));
        let posed = challenges.pose(theirs);
        ages(3 * EPOCH);
        assert_ne!(challenges.posed(posed.odd, theirs), Some(posed.nonce), "long after that");
    }

    /// A flood of answers, which only those can cause who are admitted, keeps no more than so many.
    #[test]
    fn challenges_that_were_answered_are_kept_in_bounds() {
        let challenges = Challenges::default();
        for _ in 0..3 * MOST_ANSWERED {
            let theirs = Nonce::draw();
            let posed = challenges.pose(theirs);
            assert!(challenges.is_answered_first(posed.odd, theirs));
            assert_eq!(challenges.posed(posed.odd, theirs), None, "answered already");
            let state = locked(&challenges.0);
            let kept = [&state.now, &state.before].map(|epoch| epoch.answered.len());
            assert!(kept.iter().all(|&kept| kept <= MOST_ANSWERED), "{kept:?}");
        }
    }
}
