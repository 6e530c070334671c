//! This side's way to the connection over which it pulls from one peer.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Domain, Name, QueuePairConfig};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::PullError;
use super::service::{Accepted, PullService, is_up};
use crate::tagged::wire::Pulls;

/// The way to the connection over which either side pulls from the other. The connection is made
/// when it is first needed.
#[derive(Debug)]
pub enum PullConnection {
    /// The connection is made by this side, when it is first needed.
    Makes { domain: Domain, address: String, pulls: Pulls, made: Mutex<Option<Made>> },
    /// The peer makes the connection, and shows this token.
    Accepts { service: Arc<PullService>, token: u64 },
}

/// A connection that this side has made, and when.
type Made = (Accepted, Instant);

/// The time that the peer has for making a connection, before it is asked to do so again.
const PATIENCE: Duration = Duration::from_secs(1);

impl PullConnection {
    /// The connection that this side makes to a peer at an address.
    pub fn to(domain: Domain, address: &str, pulls: Pulls) -> Self {
        Self::Makes { domain, address: address.to_owned(), pulls, made: Mutex::default() }
    }

    /// The connection that a peer makes.
    pub fn of(service: Arc<PullService>, token: u64) -> Self {
        Self::Accepts { service, token }
    }

    /// Returns whether this side makes the connection.
    pub fn is_made_here(&self) -> bool {
        matches!(self, Self::Makes { .. })
    }

    /// Returns whether this side is to make the connection now: there is none, and none is being
    /// made.
    pub fn is_to_be_made(&self) -> bool {
        match self {
            Self::Makes { made, .. } => {
                let is_up =
                    |made: &Option<Made>| made.as_ref().is_some_and(|(pair, _)| is_up(pair));
                made.try_lock().is_ok_and(|made| !is_up(&made))
            }
            Self::Accepts { .. } => false,
        }
    }

    /// Returns whether the peer is to be asked for the connection: the peer makes it, and it is not
    /// there.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Makes { .. } => false,
            Self::Accepts { service, token } => !service.has(*token),
        }
    }

    /// Gives up the connection, which the peer says has ended, unless it is newer than what the
    /// peer can know of.
    pub fn has_ended(&self) {
        if let Self::Makes { made, .. } = self
            && let Ok(mut made) = made.try_lock()
        {
            drop(made.take_if(|(_, since)| since.elapsed() > PATIENCE));
        }
    }

    /// Returns the connection, which is made if there is none.
    ///
    /// # Errors
    /// Returns an error when the peer can't be connected to, or does not connect in time.
    pub async fn get(&self) -> Result<Accepted, PullError> {
        match self {
            Self::Makes { domain, address, pulls, made } => {
                let mut made = made.lock().await;
                if let Some((pair, _)) = made.as_ref().filter(|(pair, _)| is_up(pair)) {
                    return Ok(pair.clone());
                }
                let pair = Arc::new(connect(domain, address, *pulls).await?);
                *made = Some((pair.clone(), Instant::now()));
                Ok(pair)
            }
            Self::Accepts { service, token } => {
                let connection = tokio::time::timeout(PATIENCE, service.connection(*token)).await;
                connection
                    .map_err(|_| PullError::NotConnected(PATIENCE))?
                    .ok_or(PullError::PeerGone)
            }
        }
    }
}

async fn connect(
    domain: &Domain,
    address: &str,
    Pulls { service, token }: Pulls,
) -> Result<doorbell_verbs::QueuePair, PullError> {
    let unconnected = domain.queue_pair(&QueuePairConfig::default());
    let unconnected = unconnected.map_err(|why| PullError::NoRoom(why.to_string()))?;
    let connected = unconnected.connect(Name::at(address, service), &token.to_be_bytes()).await;
    let (pair, _) = connected.map_err(|why| PullError::Connect(why.to_string()))?;
    Ok(pair)
}
