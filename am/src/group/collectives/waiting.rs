//! Waiting in a collective for what other members send.

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::group::collectives::run::Run;
use crate::group::failure::Failure;
use crate::group::mailbox::context::Context;
use crate::group::wire::WAITS;
use crate::stall::Stall;

/// How long a member waits for another before it checks that the other is alive. After each further
/// `QUIET`, it tells the other again what it waits for.
const QUIET: Duration = Duration::from_millis(250);

impl Run {
    /// Waits until `take` finds what the member `from` sends in a round. If that takes long, checks
    /// on that member meanwhile.
    pub(in crate::group) async fn expect<T>(
        &self,
        from: usize,
        round: u32,
        take: impl FnMut(&mut Context) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut wait = pin!(self.until(take));
        let mut vigil: Option<Pin<Box<dyn Future<Output = Infallible> + Send + '_>>> = None;
        poll_fn(|context| {
            if let Poll::Ready(found) = wait.as_mut().poll(context) {
                return Poll::Ready(found);
            }
            let vigil = vigil.get_or_insert_with(|| Box::pin(self.keep_vigil(from, round)));
            vigil.as_mut().poll(context).map(|never| match never {})
        })
        .await
    }

    /// Waits until `take` finds something in the team's state, or until the collective fails.
    pub(in crate::group) async fn until<T>(
        &self,
        mut take: impl FnMut(&mut Context) -> Option<T>,
    ) -> Result<T, Failure> {
        let mailbox = &self.core.mailbox;
        let mut seen = None;
        let condition = || {
            let changes = mailbox.changes();
            if seen == Some(changes) {
                return None;
            }
            seen = Some(changes);
            let found = mailbox.with(self.team.context, |context| {
                let found = take(context).map(Ok);
                found.or_else(|| context.failure(self.sequence).cloned().map(Err))
            });
            found.unwrap_or_else(|| Some(Err(self.core.own_leave())))
        };
        self.core.bundle.wait_until(condition).await
    }

    /// Awaits a future, unless the collective fails first.
    pub(in crate::group) async fn unless_failed<F: Future>(
        &self,
        future: F,
    ) -> Result<F::Output, Failure> {
        let mut future = pin!(future);
        let mut failure = pin!(self.until(|_| None::<()>));
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            match failure.as_mut().poll(context) {
                Poll::Ready(Err(failure)) => Poll::Ready(Err(failure)),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// The words that say that this member waits for another.
    fn wait_for(&self, whole: u32) -> String {
        let (own, sequence) = (self.core.mailbox.own, self.sequence);
        let what = self.collective;
        format!("process {own} waits for process {whole} in collective {sequence}, {what}")
    }

    /// Checks on a member for as long as this one waits for it: connects to that member if there is
    /// no connection, has the connection probed for signs of life, and tells the member what this
    /// one waits for. A failure ends the collective, and with it the vigil.
    async fn keep_vigil(&self, from: usize, round: u32) -> Infallible {
        let runtime = self.core.bundle.runtime();
        let mut stall = Stall::after(self.core.stall);
        let sleep = || {
            let _here = runtime.enter();
            tokio::time::sleep(QUIET)
        };
        sleep().await;
        let whole = self.team.whole(from);
        let peer = match self.core.peer(whole).await {
            Ok(peer) => peer,
            Err(failure) => {
                self.core.mailbox.fail(self.team.context, &self.here(failure));
                return pending().await;
            }
        };
        let _watch = peer.watch();
        loop {
            let waits = (self.team.context, self.sequence, self.label(round).word());
            if peer.notify(WAITS, waits).await.is_err() {
                // The end of the connection ends the collective.
                return pending().await;
            }
            stall.report(|| self.wait_for(whole));
            sleep().await;
        }
    }
}
