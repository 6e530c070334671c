//! The shutdown of a server: telling its clients, finishing the calls under way, and waiting until
//! the clients have their answers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_am as am;
use doorbell_verbs::{Cause, CloseError, Ending, GivenUp, Silence, WhyGivenUp};
use futures_util::future::join_all;

use super::state::Core;
use crate::status::Status;
use crate::wire::LEAVE;

/// How long a server that shuts down waits for its clients to take its last word and their last
/// answers, and for handlers that it has stopped to end.
const SETTLES: Duration = Duration::from_secs(10);

/// The status of callers whose calls a shutdown has stopped.
#[cold]
pub fn cut_off() -> Status {
    Status::unavailable(
        "the server has shut down, and its time limit for calls under way was over before the call \
         was done",
    )
}

/// How long a server that shuts down waits for a client to say that it sends no more calls.
const LEAVES: Duration = Duration::from_secs(5);

/// Waits until a client has taken all answers that were sent to it, for a bounded time. Returns why
/// it may not have. A client that has gone wants none of them.
async fn takes_all(client: &am::Peer) -> Result<(), WhyGivenUp> {
    let in_time = tokio::time::timeout(SETTLES, client.settled()).await.is_ok();
    match client.ending() {
        // A client that merely falls silent may want them still.
        Some(ending) if is_silent(&ending) => Err(WhyGivenUp::Gone(ending)),
        _ if in_time => Ok(()),
        _ => Err(WhyGivenUp::Late(SETTLES)),
    }
}

/// Whether a connection has ended because the peer has fallen silent.
fn is_silent(ending: &Ending) -> bool {
    let Ending::Broken(Cause::PeerSilent { limit, .. }) = ending else { return false };
    matches!(limit, Silence::Busy | Silence::Idle)
}

impl Core {
    /// Whether the time limit of a shutdown is over, so that no handler may run any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Tells all clients that the server shuts down, refuses further calls, and waits until every
    /// call that was taken in is answered. When `limit` is over, calls that are not answered yet
    /// are stopped, and their callers told. Then waits for a bounded time until the clients have
    /// sent their last calls, which are refused, and have taken the answers.
    ///
    /// # Errors
    /// When calls had to be stopped, or a client has not taken its answers in time.
    pub async fn close(&self, limit: Option<Duration>) -> Result<(), CloseError> {
        self.tell_clients();
        let stopped = match limit {
            None => {
                self.all_answered().await;
                0
            }
            Some(limit) => self.answered_within(limit).await,
        };
        let (clients, given_up) = self.who_has_not_taken_all().await;
        CloseError::unless_all_is_done(clients, given_up, stopped)
    }

    /// Has further calls and further clients refused, and sends `LEAVE` to all clients. A client
    /// that has no credit left for the message gets it later, or learns of the shutdown when its
    /// next call is refused.
    fn tell_clients(&self) {
        let clients = {
            // A client that greets the server finds either this flag, or its session below.
            let sessions = self.sessions();
            if self.closing.swap(true, Ordering::SeqCst) {
                return;
            }
            sessions.connected()
        };
        for (session, client) in clients {
            if matches!(client.try_request(LEAVE, &[session]), Ok(false)) {
                let client = client.within(SETTLES);
                self.runtime.spawn(async move { client.request(LEAVE, [session]).await });
            }
        }
    }

    /// Waits until all calls are answered. When `limit` is over, stops those that are not. Returns
    /// how many calls that were.
    async fn answered_within(&self, limit: Duration) -> usize {
        if tokio::time::timeout(limit, self.all_answered()).await.is_ok() {
            return 0;
        }
        let left = self.running.unanswered();
        self.stopped.store(true, Ordering::SeqCst);
        self.sessions().stop_all();
        // A handler that blocks its thread can't be stopped.
        let _ = tokio::time::timeout(SETTLES, self.all_answered()).await;
        left
    }

    async fn all_answered(&self) {
        loop {
            let mut ended = std::pin::pin!(self.idle.notified());
            ended.as_mut().enable();
            if self.running.unanswered() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Waits for a bounded time until a client sends no more calls. A call that was still on its
    /// way when the connection ends would be lost, and its caller not know whether it has run.
    async fn has_left(&self, session: u64) {
        let left = self.sessions().left(session);
        if let Some(left) = left {
            // The semaphore has no permits, and is closed when the client has left.
            let _ = tokio::time::timeout(LEAVES, left.acquire()).await;
        }
    }

    /// Waits for a bounded time until all clients have taken their answers. Returns how many
    /// clients there are, and those that have not.
    async fn who_has_not_taken_all(&self) -> (usize, Vec<GivenUp>) {
        let clients = self.sessions().connected();
        join_all(clients.iter().map(|(session, _)| self.has_left(*session))).await;
        let taken = join_all(clients.iter().map(|(_, client)| takes_all(client))).await;
        let clients = clients.iter().map(|(_, client)| client.to_string());
        let given_up = clients.zip(&taken).filter_map(|(peer, taken)| {
            let why = taken.as_ref().err()?.clone();
            Some(GivenUp { peer, why })
        });
        (taken.len(), given_up.collect())
    }
}
