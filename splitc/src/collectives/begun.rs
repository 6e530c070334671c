//! Collectives as values, which are awaited in place, or begun and awaited later.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use doorbell_am::group::GroupError;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::world::World;

/// The future of this process's part in a collective.
pub(super) type Part<T> = Pin<Box<dyn Future<Output = Result<Outcome<T>, GroupError>> + Send>>;

/// The result of a collective, or that the values of the processes do not fit together.
pub(super) type Outcome<T> = Result<T, Mixed>;

/// The error that processes gave values of different types or lengths to a collective, or different
/// operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mixed;

/// A collective operation in which this process takes part. All processes must call the same
/// collectives in the same order.
///
/// Await the value in place, or [`begin`](Self::begin) the collective and do something else
/// meanwhile.
#[must_use = "the other processes wait for this one: await it, or begin it"]
pub struct Collective<T> {
    world: World,
    part: Part<T>,
}

impl<T: Send + 'static> Collective<T> {
    pub(super) fn new(world: &World, part: Part<T>) -> Self {
        Self { world: world.clone(), part }
    }

    /// Begins the collective, which goes on while this process awaits other things, or in
    /// [dedicated mode](crate::Config::progress) whatever it does.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(3).run(async |world| {
    /// let sum = world.all_reduce(world.rank(), |a, b| a + b).begin()?;
    /// // What does not need the sum goes here.
    /// assert_eq!(sum.done().await?, 3);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// # Errors
    /// When a process has gone to which operations were to be sent before.
    pub fn begin(self) -> Result<Begun<T>, Error> {
        self.world.0.flush_now()?;
        let runtime = self.world.0.bundle.runtime();
        Ok(Begun { task: runtime.spawn(self.part), world: self.world })
    }
}

impl<T> IntoFuture for Collective<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Awaited<T>;

    fn into_future(self) -> Awaited<T> {
        let world = self.world.clone();
        let flush = world
            .0
            .has_to_flush()
            .then(|| -> Flush { Box::pin(async move { world.0.flush().await }) });
        Awaited { flush, part: self.part }
    }
}

type Flush = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The future of a collective that is awaited in place.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Awaited<T> {
    /// The flush that begins before the collective, if operations wait to be sent.
    flush: Option<Flush>,
    part: Part<T>,
}

impl<T> Future for Awaited<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // While a process takes no messages, the collective goes on among those that do.
        if let Some(flush) = &mut self.flush
            && let Poll::Ready(flushed) = flush.as_mut().poll(context)
        {
            self.flush = None;
            flushed?;
        }
        let ended = ready!(self.part.as_mut().poll(context));
        Poll::Ready(ended.map_err(Error::from).and_then(outcome))
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").finish_non_exhaustive()
    }
}

fn outcome<T>(outcome: Outcome<T>) -> Result<T, Error> {
    outcome.map_err(|Mixed| {
        Error::invalid(
            "the processes gave values of different types or lengths to a collective, or different \
             operators",
        )
    })
}

impl<T> fmt::Debug for Collective<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collective").field("world", &self.world).finish_non_exhaustive()
    }
}

/// A handle to a collective that was begun. If the handle is dropped, the collective goes on, and
/// its result is lost.
#[must_use = "the result is lost without the handle"]
pub struct Begun<T> {
    world: World,
    task: JoinHandle<Result<Outcome<T>, GroupError>>,
}

impl<T> Begun<T> {
    /// Waits for the result of the collective.
    ///
    /// # Errors
    /// The errors of the collective itself.
    pub async fn done(self) -> Result<T, Error> {
        // Other processes may join the collective only after they have got what waits here to be
        // sent.
        match self.world.0.while_flushing(self.task).await? {
            Ok(ended) => outcome(ended?),
            Err(why) if why.is_panic() => std::panic::resume_unwind(why.into_panic()),
            Err(_) => Err(Error::invalid("the runtime of the world was shut down")),
        }
    }

    /// Whether the collective is done, so that its result is there.
    pub fn is_done(&self) -> bool {
        self.task.is_finished()
    }
}

impl<T> fmt::Debug for Begun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("done", &self.is_done()).finish()
    }
}
