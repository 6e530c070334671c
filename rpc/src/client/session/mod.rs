//! Sessions: a client's side of its relation to one server, from the first attempt to connect until
//! the channel is dropped.
//!
//! A [`Session`] outlives its connections. The server remembers which calls of the session have
//! begun, so that a call which is sent again over the next connection does not run twice.
//!
//! Which states a session and its calls have, and what changes them, is drawn in [`states`]. What
//! happens to a call is written in [`call`], from top to bottom:
//!
//! | step | what the call does | otherwise |
//! |---|---|---|
//! | 1 | takes a permit (`permits`) | fails, if the channel sheds calls |
//! | 2 | gets a connection, which is made if there is none (`connector`, `greeting`) | fails, if the server is gone |
//! | 3 | is encoded for the server; a long body gets a bulk connection (`connection`) | fails, if the server takes no such body |
//! | 4 | takes a credit and its number, and is sent (`numbers`) | step 7, not begun |
//! | 5 | waits in the table of calls in flight for its answer (`calls`) | step 7, outcome unknown |
//! | 6 | receives its response; a stream keeps the permit (`response`) | fails |
//! | 7 | was lost, and goes back to step 2, if it has not begun or may run again (`history`) | fails |
//!
//! Most calls are [`Short`]: they take the steps 1 to 4 in one go, or else as described above.
//!
//! A call whose deadline passes, or whose future is dropped, is given up on the spot (`given_up`).

mod call;
mod calls;
mod connection;
mod connector;
mod given_up;
mod greeting;
mod history;
mod numbered;
mod numbers;
mod permits;
mod response;
mod short;
mod states;

use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_am::{Endpoint, Event, Name};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub use self::calls::Calls;
use self::connector::Connector;
use self::numbers::Numbers;
use self::permits::Permits;
pub use self::short::{End, Going, Short};
use self::states::runtime_ended;
use super::backoff::Backoff;
use crate::alarm::{Late, until};
use crate::status::Status;

/// The client's side of its relation to a server, which all handles to a channel share.
pub struct Session {
    pub connector: Arc<Connector>,
    pub calls: Arc<Calls>,
    /// The task that ends calls whose connections have ended.
    watch: AbortHandle,
    pub permits: Permits,
    numbers: Numbers,
    pub settings: Settings,
}

/// The settings of a session.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most calls in flight.
    pub in_flight: usize,
    /// Whether calls beyond those fail rather than wait.
    pub sheds: bool,
    /// Whether calls wait for a server that is gone, unless their requests say otherwise.
    pub waits: bool,
    /// The time allowed for calls that have no deadline of their own; `None` if unbounded.
    pub timeout: Option<Duration>,
    /// How long a server may be silent to attempts to connect before it counts as gone, if that is
    /// set.
    pub patience: Option<Duration>,
    pub backoff: Backoff,
}

/// How long a server may be silent before calls take it for gone, unless that is set. A quota of
/// processor time, a debugger or a live migration stops healthy processes for seconds.
const SILENCE: Duration = Duration::from_secs(20);

impl AsRef<Permits> for Session {
    fn as_ref(&self) -> &Permits {
        &self.permits
    }
}

impl Session {
    /// Makes the session of an endpoint that receives by the handlers of `calls`. The session
    /// connects to the server `name` when a connection is first asked for.
    pub fn new(endpoint: Endpoint, calls: Arc<Calls>, name: Name, settings: Settings) -> Arc<Self> {
        let watch = endpoint.bundle().runtime().spawn(watch(&endpoint, calls.clone(), &name));
        let permits = Permits::new(&name, settings.in_flight, settings.sheds);
        let patience = settings.patience.unwrap_or(SILENCE);
        let connector = Connector::new(endpoint, name, settings.backoff, patience);
        calls.connector.get_or_init(|| Arc::downgrade(&connector));
        let (watch, numbers) = (watch.abort_handle(), Numbers::default());
        Arc::new(Self { connector, calls, watch, permits, numbers, settings })
    }

    /// The name of the server.
    pub fn name(&self) -> &Name {
        &self.connector.name
    }

    /// Connects to the server by a deadline, whether or not the server counts as gone meanwhile.
    ///
    /// # Errors
    /// When the server refuses this client, or there is no connection in time.
    pub async fn connect(&self, deadline: Instant) -> Result<(), Status> {
        match until(Some(deadline), self.connector.connection(true)).await {
            Ok(connected) => connected.map(drop).map_err(Status::not_run),
            Err(Late) => Err(Status::unavailable(self.connector.no_connection_in_time())),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.watch.abort();
        self.connector.close();
    }
}

/// Ends the calls of connections that have ended, again and again. When the NIC is closed, the
/// runtime ends that serves the channel, or the last handle to the channel is dropped, the session
/// is over.
fn watch(
    endpoint: &Endpoint,
    calls: Arc<Calls>,
    name: &Name,
) -> impl Future<Output = ()> + Send + use<> {
    let mut events = endpoint.events();
    let closes = Closes { calls, name: name.clone() };
    async move {
        let calls = &closes.calls;
        loop {
            match events.recv().await {
                Ok(Event::Gone(peer, ending)) => calls.end_all_of(&peer, &ending.to_string()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => calls.end_all_of_gone(),
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Ends a session with all its calls when dropped.
struct Closes {
    calls: Arc<Calls>,
    name: Name,
}

impl Drop for Closes {
    fn drop(&mut self) {
        if let Some(connector) = self.calls.connector.get().and_then(Weak::upgrade) {
            connector.close();
        }
        self.calls.close(runtime_ended(&self.name));
    }
}
