//! Members of a group that meet each other, each in its own time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::Name;
use doorbell_collectives::GroupError;
use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep, timeout_at};

use super::control::{CONTROL_KIND, control, of_control};
use crate::tagged::ConnectError;
use crate::tagged::{Endpoint, Match, Peer};

/// The first pause between attempts to connect to a member. Each pause is longer than the one
/// before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between attempts to connect to a member.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The longest patience that a clock can count, which stands for longer ones.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The kinds of messages by which members meet.
const HELLO: u8 = 0;
const WELCOME: u8 = 1;

/// A member that meets the others.
pub struct Meeting<'m> {
    endpoint: &'m Endpoint,
    rank: usize,
    names: &'m [Name],
    patience: Duration,
    until: Instant,
    /// A number that members with the same list of members have in common.
    digest: u32,
}

impl<'m> Meeting<'m> {
    pub fn new(endpoint: &'m Endpoint, rank: usize, names: &'m [Name], patience: Duration) -> Self {
        let until = Instant::now() + patience.min(LONGEST_PATIENCE);
        Self { endpoint, rank, names, patience, until, digest: digest(names) }
    }

    /// Checks that the list has each member once, and this one at its own place. The address there
    /// may be another than the endpoint's own, since a member may be reached in different ways.
    pub fn check(&self) -> Result<(), GroupError> {
        let (rank, names, own) = (self.rank, self.names, self.endpoint.name());
        let mut places = HashMap::with_capacity(names.len());
        for (second, name) in names.iter().enumerate() {
            if let Some(first) = places.insert(name, second) {
                return Err(GroupError::NamedTwice { first, second, name: name.to_string() });
            }
        }
        if names[rank].service() != own.service() {
            let (name, endpoint) = (names[rank].to_string(), own.to_string());
            return Err(GroupError::NotNamed { rank, name, endpoint });
        }
        Ok(())
    }

    /// Connects to the members of lower ranks, and waits for those of higher ranks. Returns the
    /// peers in the order of ranks, with none at this member's own place.
    pub async fn all(&self) -> Result<Vec<Option<Peer>>, GroupError> {
        let ranks = 0..self.names.len();
        try_join_all(ranks.map(|other| async move {
            match other {
                _ if other < self.rank => self.reach(other).await.map(Some),
                _ if other > self.rank => self.await_hello(other).await.map(Some),
                _ => Ok(None),
            }
        }))
        .await
    }

    /// Connects to a member, and is welcome there. Attempts are repeated until they succeed, or
    /// time is over.
    async fn reach(&self, other: usize) -> Result<Peer, GroupError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match timeout_at(self.until, self.endpoint.connect(&self.names[other])).await
            {
                Ok(Ok(peer)) => match timeout_at(self.until, self.greet(&peer)).await {
                    Ok(Ok(digest)) => return self.checked(other, digest, peer),
                    Ok(Err(why)) => why,
                    Err(_) => "it has not joined the group".to_owned(),
                },
                Ok(Err(why)) if why.is_final() => return Err(self.absent(other, texts(&why))),
                Ok(Err(why)) => texts(&why),
                Err(_) => "it has not answered".to_owned(),
            };
            if Instant::now() + pause >= self.until {
                return Err(self.absent(other, why));
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    /// Tells a member who this is, and returns the digest of the member's list.
    async fn greet(&self, peer: &Peer) -> Result<u32, String> {
        let welcome = Match::bits(control(WELCOME, 0, 0)).mask(CONTROL_KIND).from(peer);
        let welcome = self.endpoint.receive(welcome);
        let hello = peer.send(control(HELLO, self.rank, self.digest), "");
        hello.await.map_err(|why| why.to_string())?;
        let welcome = welcome.await.map_err(|why| why.to_string())?;
        Ok(of_control(welcome.bits).1)
    }

    /// Waits until a member has connected to this one, and welcomes it.
    async fn await_hello(&self, other: usize) -> Result<Peer, GroupError> {
        let rank = 0xFFFF << 32;
        let hello = Match::bits(control(HELLO, other, 0)).mask(CONTROL_KIND | rank);
        let hello = match timeout_at(self.until, self.endpoint.receive(hello)).await {
            Ok(Ok(hello)) => hello,
            Ok(Err(why)) => return Err(self.absent(other, why.to_string())),
            Err(_) => return Err(self.absent(other, "it has not connected to this one".to_owned())),
        };
        let peer = hello.from;
        let welcome = peer.send(control(WELCOME, self.rank, self.digest), "");
        welcome.await.map_err(|why| self.absent(other, why.to_string()))?;
        self.checked(other, of_control(hello.bits).1, peer)
    }

    fn checked(&self, rank: usize, digest: u32, peer: Peer) -> Result<Peer, GroupError> {
        match digest == self.digest {
            true => Ok(peer),
            false => Err(GroupError::OtherGroup { rank, name: self.names[rank].to_string() }),
        }
    }

    fn absent(&self, rank: usize, why: String) -> GroupError {
        let (name, patience, why) = (self.names[rank].to_string(), self.patience, Arc::from(why));
        GroupError::Absent { rank, name, patience, why }
    }
}

/// The text of an error, with those of its causes.
fn texts(why: &ConnectError) -> String {
    let mut text = why.to_string();
    let mut next = std::error::Error::source(why);
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}

/// Digests the number of members, and their service numbers. Addresses may differ: a member may be
/// reached by others in different ways.
fn digest(names: &[Name]) -> u32 {
    let mixed = |digest: u64, word: u64| (digest ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let digest = names.iter().fold(mixed(0, names.len() as u64), |digest, name| {
        mixed(digest.rotate_left(29), name.service().0)
    });
    (digest >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_other_members_or_in_another_order_have_other_digests() {
        let names = |services: &[u64]| -> Vec<_> {
            services.iter().map(|service| Name::at("shm:a", *service)).collect()
        };
        let all = [&[][..], &[7], &[7, 7], &[7, 8], &[8, 7], &[7, 8, 9]].map(names);
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                assert_ne!(digest(one), digest(other), "{one:?} and {other:?}");
            }
        }
    }
}
