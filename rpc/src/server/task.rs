//! The task of a call whose handler does not run where the call was received.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use doorbell_am as am;

use super::answer::{Encoded, ReplyPath, refused};
use super::handling::Handling;
use super::leaving::cut_off;
use super::queue::Waiting;
use super::running::Running;
use super::slot::Slot;
use super::state::Core;
use crate::message::{Body, Request};
use crate::wire::CallHead;

/// A call that has passed all checks, and whose handler is to run as a task.
pub struct Taken {
    pub head: CallHead,
    pub call: Request<Body>,
    pub peer: am::Peer,
    pub slot: Slot,
}

/// The future of a task that runs the handler of a call whose body is there, and answers the call.
/// The handler does not run if the call has waited for too long, or until its deadline.
///
/// Most handlers are done when they are first polled. The task of another makes a box for what
/// follows.
pub struct Task {
    core: Arc<Core>,
    begins: Option<(Taken, Waiting, ReplyPath)>,
    rest: Option<Rest>,
}

type Rest = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Task {
    pub fn new(core: &Arc<Core>, taken: Taken, waiting: Waiting, way: ReplyPath) -> Self {
        Self { core: core.clone(), begins: Some((taken, waiting, way)), rest: None }
    }

    /// Polls the handler once. Returns what is to be done then, if the call is not answered.
    fn begin(
        core: &Arc<Core>,
        (taken, waiting, way): (Taken, Waiting, ReplyPath),
        context: &mut Context<'_>,
    ) -> Option<Rest> {
        let Taken { head, call, peer, mut slot } = taken;
        let (deadline, core) = (call.deadline(), core.clone());
        let begins = waiting.begins(deadline);
        let begins = if core.is_stopped() { Err(cut_off()) } else { begins };
        if let Err(status) = begins {
            return Some(Box::pin(async move {
                way.answer(&core, &peer, head, refused(status), slot).await;
            }));
        }
        // It was found when the call was received, and a server's methods stay.
        let route = core.router.route(head.method)?;
        let method = route.method.path();
        let (future, polled) = Handling::begin(route, call, &peer, context);
        let answer = match polled {
            Poll::Pending => None,
            Poll::Ready(answered) => Some(Encoded::of(answered, peer.longest_payload())),
        };
        match (way, answer) {
            (ReplyPath::Reply(kept), Some(answer)) if !answer.is_followed() => {
                // The caller may call again as soon as it has the answer, so the place is given
                // back first.
                slot.give_back();
                answer.answer_kept(kept, head.call);
                None
            }
            (way, answer) => {
                let running = Running { core, peer, head, method, deadline, future, answer, slot };
                Some(Box::pin(running.run_stoppably(way)))
            }
        }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { core, begins, rest } = &mut *self;
        if let Some(begins) = begins.take() {
            *rest = Self::begin(core, begins, context);
        }
        match rest {
            Some(rest) => rest.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}
