//! Barriers, by the dissemination algorithm: no member goes on before all have arrived.

use bytes::Bytes;

use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::failure::Failure;
use doorbell_collectives::schedule::{Exchange, dissemination};

/// Runs a barrier to its end, and returns its result.
pub(in crate::group) async fn run(run: Run) -> Result<(), GroupError> {
    let result = all(&run).await;
    run.done(result)
}

async fn all(run: &Run) -> Result<(), Failure> {
    for exchange in dissemination(run.rank(), run.size()) {
        meet(run, exchange).await?;
    }
    Ok(())
}

/// Runs one round of a barrier: sends to one member, and waits for the message of another. The
/// future for the rare case, a message that can't be sent at once, is allocated, so that the future
/// of a barrier stays small.
async fn meet(run: &Run, Exchange { round, to, from }: Exchange) -> Result<(), Failure> {
    if !run.try_send_nothing(to, round)? {
        let later = async {
            run.enter().await?;
            run.send(to, round, &Bytes::new()).await
        };
        Box::pin(later).await?;
    }
    run.receive_nothing(from, round).await
}

/// Sends the message of a barrier's first round if that needs no waiting, and returns whether the
/// message was sent.
pub(in crate::group) fn try_begin(run: &Run) -> Result<bool, Failure> {
    match dissemination(run.rank(), run.size()).next() {
        Some(Exchange { round, to, .. }) => run.try_send_nothing(to, round),
        None => Ok(true),
    }
}

/// Runs a barrier to its end after the message of the first round was sent.
pub(in crate::group) async fn run_begun(
    run: Run,
    begun: Result<(), Failure>,
) -> Result<(), GroupError> {
    let result = match begun {
        Ok(()) => rest(&run).await,
        Err(failure) => Err(failure),
    };
    run.done(result)
}

async fn rest(run: &Run) -> Result<(), Failure> {
    for exchange in dissemination(run.rank(), run.size()) {
        match exchange.round {
            0 => run.receive_nothing(exchange.from, 0).await?,
            _ => meet(run, exchange).await?,
        }
    }
    Ok(())
}
