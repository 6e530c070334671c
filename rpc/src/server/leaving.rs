//! The shutdown of a server: telling its clients, finishing the calls under way, and waiting until
//! the clients have their answers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_am as am;
use doorbell_verbs::{Cause, Ending, Silence};
use futures_util::future::join_all;

use super::state::Core;
use crate::status::Status;
use crate::wire::LEAVE;

/// How long a server that shuts down waits for its clients to take its last word and their last
/// answers, and for handlers that it has stopped to end.
const SETTLES: Duration = Duration::from_secs(10);

/// The most clients that an error of a shutdown names.
const MOST_NAMED: usize = 4;

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

/// Waits until a client has taken all answers that were sent to it, for a bounded time. Returns
/// whether it has, or has gone and wants none of them.
async fn takes_all(client: &am::Peer) -> bool {
    let in_time = tokio::time::timeout(SETTLES, client.settled()).await.is_ok();
    // A client that merely falls silent may want them still.
    let silent = |limit| matches!(limit, Silence::Busy | Silence::Idle);
    let lost = match client.ending() {
        Some(Ending::Broken(Cause::PeerSilent { limit, .. })) => silent(limit),
        _ => false,
    };
    in_time && !lost
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
    pub async fn close(&self, limit: Option<Duration>) -> Result<(), Status> {
        self.tell_clients();
        let stopped = match limit {
            None => {
                self.all_answered().await;
                0
            }
            Some(limit) => self.answered_within(limit).await,
        };
        let left = self.who_has_not_taken_all().await;
        let why = match (stopped, limit) {
            (1.., Some(limit)) => format!("{stopped} calls were not done within {limit:?}"),
            _ => String::new(),
        };
        let why = [why, left].into_iter().filter(|why| !why.is_empty()).collect::<Vec<_>>();
        if why.is_empty() {
            return Ok(());
        }
        Err(Status::unavailable(format!("the server has ended, and {}", why.join("; and "))))
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
    async fn answered_within(&self, limit: Duration) -> u64 {
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

    /// Waits for a bounded time until a client sends no more calls. A call that was still on its way
    /// when the connection ends would be lost, and its caller not know whether it has run.
    async fn has_left(&self, session: u64) {
        let left = self.sessions().left(session);
        if let Some(left) = left {
            // The semaphore has no permits, and is closed when the client has left.
            let _ = tokio::time::timeout(LEAVES, left.acquire()).await;
        }
    }

    /// Waits for a bounded time until all clients have taken their answers. Returns a text that
    /// names those who have not, which is empty if there are none.
    async fn who_has_not_taken_all(&self) -> String {
        let clients = self.sessions().connected();
        join_all(clients.iter().map(|(session, _)| self.has_left(*session))).await;
        let taken = join_all(clients.iter().map(|(_, client)| takes_all(client))).await;
        let left = clients.iter().zip(taken).filter(|(_, taken)| !taken);
        let left: Vec<_> = left.map(|((_, client), _)| client.to_string()).collect();
        if left.is_empty() {
            return String::new();
        }
        let named = left[..left.len().min(MOST_NAMED)].join(", ");
        let more = if left.len() > MOST_NAMED { ", …" } else { "" };
        format!(
            "{} of {} clients have not taken their last answers: {named}{more}. They are silent, or \
             their programs have taken no message for {SETTLES:?}",
            left.len(),
            clients.len()
        )
    }
}
