//! One attempt to connect: maps the server, says hello, and is welcomed to a session.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{CallError, Endpoint, Name, Peer, Undeliverable};
use doorbell_verbs::{ConnectError, ReachError, RejectReason};
use tokio::time::Instant;

use super::connection::{Connection, unnamed};
use crate::status::{Status, chain};
use crate::wire::{HELLO, Hello, VERSION, WELCOME, Welcome};

/// Connects to a server, and opens a session or goes on with the session `before`. `client` is the
/// number that the client has drawn at random. `left` is a connection whose server shuts down, and
/// whose calls may still wait for answers.
pub async fn greet(
    endpoint: &Endpoint,
    name: &Name,
    client: u64,
    (before, left): (u64, Option<Peer>),
) -> Result<Arc<Connection>, Unopened> {
    let began = Instant::now();
    let peer = endpoint.connect(name).await;
    let peer = peer.map_err(|why| unmapped(name, &why, began.elapsed()))?;
    let hello = Hello { version: VERSION, client, session: before };
    let reply = peer.call(HELLO, hello.words()).await;
    let reply = reply.map_err(|why| ungreeted(name, why))?;
    let words = reply
        .arguments(WELCOME)
        .map_err(|why| Status::unavailable(format!("it is no RPC server: {why}")))?;
    let welcome = Welcome::from_words(words);
    if welcome.version != VERSION {
        return Err(Status::failed_precondition(format!(
            "{name} speaks version {} of Doorbell's RPC, and this client version {VERSION}: build both \
             from the same version",
            welcome.version
        ))
        .into());
    }
    match welcome.session {
        Welcome::LEAVES => {
            // A server that takes its time to end is asked again and again, and keeps no connection
            // of each time.
            if left.as_ref() != Some(&peer) {
                peer.runtime().clone().spawn(async move { peer.disconnect().await });
            }
            Err(Status::unavailable("the server is shutting down").into())
        }
        0 => Err(Status::resource_exhausted(format!(
            "{name} has as many clients as it knows at a time: raise its limit of sessions"
        ))
        .into()),
        _ => Ok(Arc::new(Connection::new(peer, welcome, endpoint, name))),
    }
}

/// The error of an attempt to connect.
pub struct Unopened {
    pub status: Status,
    /// Whether the server may be there nevertheless: nothing has come from it, as from one that is
    /// stopped, or it asks to be tried again.
    pub may_be_there: bool,
}

impl From<Status> for Unopened {
    fn from(status: Status) -> Self {
        Self { status, may_be_there: false }
    }
}

/// A system that knows that nobody is there says so sooner than this. Who says so later has waited
/// for an answer in vain.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Whether a server may be there to which an attempt to connect has failed after the time `took`.
/// One that was stopped, and goes on, gives up connections that others asked for meanwhile.
fn may_be_there(why: &ConnectError, took: Duration) -> bool {
    use ConnectError::{Crowded, Lost, PeerLeft, Reach, Refused, Stale, TimedOut};
    match why {
        TimedOut { .. } | Crowded { .. } | Stale { .. } | PeerLeft { .. } => true,
        // It has connected, and was silent then.
        Lost { .. } => true,
        Refused { reason, .. } => {
            [RejectReason::TIMEOUT, RejectReason::STALE_CONNECTION].contains(reason)
        }
        Reach(ReachError::Nobody { .. }) => took >= AT_ONCE,
        _ => false,
    }
}

/// The error of a server that was not connected to in the time `took`. One to which no attempt can
/// succeed fails the calls that wait for it, too.
#[cold]
fn unmapped(name: &Name, why: &ConnectError, took: Duration) -> Unopened {
    let text = chain(why);
    let status = match why.is_final() {
        true => Status::failed_precondition(format!("{name} can't be connected to: {text}")),
        false => Status::unavailable(unnamed(&text, name)),
    };
    Unopened { status, may_be_there: may_be_there(why, took) }
}

/// The status of a client whose hello was not answered. An endpoint that has no handler for hellos
/// will not get one by asking again, so that failure is final.
#[cold]
fn ungreeted(name: &Name, why: CallError) -> Unopened {
    use Undeliverable::{Arguments, NoHandler};
    let text = unnamed(&chain(&why), name);
    match why {
        CallError::Undeliverable { why: NoHandler | Arguments, .. } => Status::failed_precondition(
            format!("{name} is an endpoint of Active Messages, but no RPC server: {text}"),
        )
        .into(),
        // A server that is gone refuses the next attempt.
        _ => Unopened {
            status: Status::unavailable(format!("greeting it failed: {text}")),
            may_be_there: true,
        },
    }
}
