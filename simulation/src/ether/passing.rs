//! Virtual time that passes while programs of Tokio run.

use std::time::Duration;

use super::{Ether, Pace, Still};

/// The longest time that passes at once where nothing else is asked for.
const HOUR: Duration = Duration::from_secs(3600);

/// Runs a future, and lets the time of an ether pass meanwhile, from one device's event to the
/// next. Time passes only when all devices are asleep. If everything runs on one thread, the same
/// seed gives the same run.
pub async fn passing<F: Future>(ether: &Ether, future: F) -> F::Output {
    passing_in_steps(ether, HOUR, async |_| (), future).await
}

/// Runs a future as [`passing`] does, in steps of `longest` at most: where nothing happens in the
/// network, time passes by so much between two polls of the future. `stepped` is called after each
/// step, with what [`Ether::step`] has returned.
pub async fn passing_in_steps<F: Future>(
    ether: &Ether,
    longest: Duration,
    mut stepped: impl AsyncFnMut(Result<(), Still>),
    future: F,
) -> F::Output {
    let passes = async {
        loop {
            // A program that is awake goes on, and one that was woken just now begins to.
            stepped(ether.step(Pace::Asleep, ether.now() + longest)).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        output = future => output,
        () = passes => unreachable!("time does not end"),
    }
}

/// Lets some time of an ether pass, with all that happens in it.
pub async fn passes(ether: &Ether, time: Duration) {
    let until = ether.now() + time;
    while ether.step(Pace::Asleep, until) != Err(Still::Nothing) {
        tokio::task::yield_now().await;
    }
}
