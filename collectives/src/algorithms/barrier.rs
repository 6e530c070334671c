//! Barriers, by the dissemination algorithm: no member goes on before all have arrived.

use crate::communicator::Rounds;
use crate::schedule::{Exchange, dissemination};

/// Waits until all members have begun the barrier.
pub async fn barrier<R: Rounds>(rounds: &R) -> Result<(), R::Failure> {
    for exchange in dissemination(rounds.rank(), rounds.size()) {
        rounds.meet(exchange).await?;
    }
    Ok(())
}

/// Returns the first round of a barrier, in which a member tells another that it has arrived.
/// Returns `None` if there is only one member.
pub fn first_of_barrier<R: Rounds>(rounds: &R) -> Option<Exchange> {
    dissemination(rounds.rank(), rounds.size()).next()
}

/// Waits until all members have begun the barrier, after the message of the
/// [first round](first_of_barrier) was sent.
pub async fn rest_of_barrier<R: Rounds>(rounds: &R) -> Result<(), R::Failure> {
    for exchange in dissemination(rounds.rank(), rounds.size()) {
        match exchange.round {
            0 => drop(rounds.receive(exchange.from, 0).await?),
            _ => rounds.meet(exchange).await?,
        }
    }
    Ok(())
}
