//! Calls of which many are in flight at a time, which tests of Active Messages and of RPC share.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;

use super::verbs::Beat;
use crate::perf::Plan;
use crate::perf::figures::Quantity;

/// Makes calls from as many tasks of this thread as there may be calls in flight, each task one
/// call after the other. Returns how many calls were made, and how many a second were answered.
///
/// `call` makes the call of a number and checks its answer. The tasks run on the `LocalSet` that
/// this function is awaited in.
pub async fn run(
    plan: &Plan,
    beat: &Beat,
    call: impl AsyncFn(u64) -> anyhow::Result<()> + 'static,
) -> anyhow::Result<(u64, Quantity)> {
    let (begun, meter, amount) = (Rc::new(Cell::new(0)), plan.meter(), plan.amount);
    let (call, since) = (Rc::new(call), Instant::now());
    let task = |_| {
        let (call, begun, beat) = (call.clone(), begun.clone(), beat.clone());
        tokio::task::spawn_local(async move {
            loop {
                let number: u64 = begun.get();
                if number > 0 && amount.is_over(number, || since.elapsed()) {
                    return anyhow::Ok(());
                }
                begun.set(number + 1);
                call(number).await?;
                beat.count();
            }
        })
    };
    let tasks: Vec<_> = (0..plan.in_flight.max(1)).map(task).collect();
    for task in tasks {
        task.await.context("a task panicked")??;
    }
    let calls = begun.get();
    meter.at(calls, since.elapsed());
    Ok((calls, Quantity::Rate(calls as f64 / since.elapsed().as_secs_f64())))
}
