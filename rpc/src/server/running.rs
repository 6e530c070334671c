//! A call whose handler runs: at once where the call was received, or as a task.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorbell_am as am;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use tokio::time::Instant;

use super::answer::{Encoded, ReplyPath};
use super::handling::Handling;
use super::leaving::cut_off;
use super::slot::Slot;
use super::state::Core;
use crate::message::{Body, Request};
use crate::router::{Answered, Route};
use crate::wire::CallHead;

/// How long a handler may hold the credit of Active Messages with which its call was sent. After
/// this time the client is told that the call runs, and gets the credit back.
const HOLDS_CREDIT: Duration = Duration::from_millis(20);

/// A call whose handler runs, with what is needed to answer it.
pub struct Running {
    pub core: Arc<Core>,
    pub peer: am::Peer,
    pub head: CallHead,
    pub method: &'static str,
    pub deadline: Option<Instant>,
    pub future: Handling,
    /// The answer, if the handler has returned and the answer is not sent yet.
    pub answer: Option<Encoded>,
    pub slot: Slot,
}

impl Running {
    /// Takes the handler of a call, which is not called yet.
    pub fn begin(
        core: &Arc<Core>,
        peer: am::Peer,
        head: CallHead,
        route: &Route,
        call: Request<Body>,
        slot: Slot,
    ) -> Self {
        let (deadline, method) = (call.deadline(), route.method.path());
        let future = Handling::new(route, call, &peer);
        Self { core: core.clone(), peer, head, method, deadline, future, answer: None, slot }
    }

    /// Runs the handler to its end, and answers the call. Stops early if the caller's deadline
    /// passes or the caller gives the call up.
    pub async fn run(mut self, way: ReplyPath) {
        if self.answer.is_none() {
            // Most handlers are done at once, so nothing is prepared for a wait before the first
            // poll.
            let future = &mut self.future;
            let first = std::future::poll_fn(|context| Poll::Ready(future.poll_unpin(context)));
            if let Poll::Ready(answered) = first.await {
                self.answer = Some(Encoded::of(answered, self.peer.longest_payload()));
            }
        }
        match (way, self.answer.take_if(|answer| !answer.is_followed())) {
            (ReplyPath::Reply(kept), Some(answer)) => {
                // The caller may call again as soon as it has the answer, so the place is given
                // back first.
                self.slot.give_back();
                answer.answer_kept(kept, self.head.call);
            }
            // The futures below take kilobytes, which a task whose answer is here should not carry.
            (way, Some(answer)) => {
                let Self { core, peer, head, slot, .. } = self;
                Box::pin(way.answer(&core, &peer, head, answer, slot)).await;
            }
            (way, None) => Box::pin(self.run_stoppably(way)).await,
        }
    }

    /// Runs a handler that waits, or sends an answer that a stream or a long body follows. The
    /// session can stop either.
    pub async fn run_stoppably(self, way: ReplyPath) {
        let Self { core, peer, head, method, deadline, future, answer, slot } = self;
        // The way to answer the call, until the answer is sent.
        let (mut way, mut slot) = (Some(way), Some(slot));
        let work = async {
            let answer = match answer {
                Some(answer) => answer,
                None => {
                    let answered = waited_for(future, &mut way, head.call).await;
                    Encoded::of(answered, peer.longest_payload())
                }
            };
            if let (Some(way), Some(slot)) = (way.take(), slot.take()) {
                way.answer(&core, &peer, head, answer, slot).await;
            }
        };
        stoppably(&core, &peer, head, async {
            let Some(deadline) = deadline else { return work.await };
            if tokio::time::timeout_at(deadline, work).await.is_err() {
                // The client has its own clock, and fails the call by itself.
                tracing::debug!(method, "a handler was stopped: its caller's time is over");
            }
        })
        .await;
        if core.is_stopped()
            && let (Some(way), Some(slot)) = (way, slot)
        {
            way.answer(&core, &peer, head, Encoded::error(&cut_off()), slot).await;
        }
    }
}

/// Runs `work` for a call in such a way that the call's session can stop it.
pub async fn stoppably(
    core: &Arc<Core>,
    peer: &am::Peer,
    head: CallHead,
    work: impl Future<Output = ()>,
) {
    let (stop, stopped) = AbortHandle::new_pair();
    let ticket = core.sessions().waits(head.session, head.call, peer, stop);
    let _stays = Stays { core, head, ticket };
    // Whoever has stopped the work knows that, so the result is not needed.
    let _ = Abortable::new(work, stopped).await;
}

/// Waits for a handler. If that takes long, accepts the call first, so that the client gets its
/// credit back.
async fn waited_for(mut future: Handling, way: &mut Option<ReplyPath>, call: u64) -> Answered {
    if let Ok(answered) = tokio::time::timeout(HOLDS_CREDIT, &mut future).await {
        return answered;
    }
    *way = way.take().map(|way| way.accept(call));
    future.await
}

/// A call that its session can stop. Dropping this tells the session that the call is over.
struct Stays<'c> {
    core: &'c Core,
    head: CallHead,
    ticket: u64,
}

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        self.core.sessions().ends(self.head.session, self.head.call, self.ticket);
    }
}
