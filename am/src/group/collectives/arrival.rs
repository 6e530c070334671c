//! Barriers in two phases: an arrival, and a wait for the other members.

use doorbell_collectives::schedule::Exchange;
use doorbell_collectives::{Call, Communicator, Operation, algorithms};

use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::failure::Failure;
use crate::group::handle::Group;

impl Group {
    /// Announces that this member has reached a barrier, and returns a future that waits for the
    /// other members: a split-phase barrier, during which this member can do other work. The others
    /// learn of the arrival when `arrive` returns or, at the latest, when the calling task lets
    /// others run.
    ///
    /// ```
    /// # use doorbell_am::group::{Group, GroupError};
    /// async fn step(group: &Group) -> Result<(), GroupError> {
    ///     let arrived = group.arrive();
    ///     // Work that needs nothing of the other members.
    ///     arrived.await
    /// }
    /// ```
    pub fn arrive(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let place = self.communicator();
        let runtime = place.core.bundle.runtime().clone();
        let begun = place.begin(Call::of(Operation::Barrier)).map(|run| (try_first(&run), run));
        let waits = begun.map(|(sent, run)| match sent {
            Ok(false) => Err(runtime.spawn(async move {
                let result = algorithms::barrier(&run).await;
                run.end(result)
            })),
            Ok(true) => Ok((run, Ok(()))),
            Err(failure) => Ok((run, Err(failure))),
        });
        async move {
            match waits? {
                Ok((run, Ok(()))) => {
                    let result = algorithms::rest_of_barrier(&run).await;
                    run.end(result)
                }
                Ok((run, Err(failure))) => run.end(Err(failure)),
                Err(task) => task.await.unwrap_or(Err(GroupError::Shutdown)),
            }
        }
    }
}

/// Sends the message of a barrier's first round if that needs no waiting, and returns whether the
/// message was sent.
fn try_first(run: &Run) -> Result<bool, Failure> {
    match algorithms::first_of_barrier(run) {
        Some(Exchange { round, to, .. }) => run.try_send_nothing(to, round),
        None => Ok(true),
    }
}
