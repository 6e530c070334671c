//! A process that waits for long says what it waits for, and for whom.

mod reports;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use doorbell_kit::PATIENCE;
use doorbell_kit::child;
use doorbell_splitc::{Carrier, Config, Error, Job, Spread, World};

use reports::Reports;

/// Runs a program in two processes whose waits are reported after a moment. Process 0 waits for
/// process 1, which goes on when it has read a report with each of `expected`.
fn reported(
    carrier: Option<Carrier>,
    expected: &[&str],
    waits: impl AsyncFn(&World, &Spread<u64>) -> Result<(), Error> + Sync,
    answers: impl AsyncFn(&World, &Spread<u64>) -> Result<(), Error> + Sync,
) {
    let reports = Reports::of_process();
    let computes = AtomicBool::new(false);
    let config = Config { stall: Duration::from_millis(20), carrier, ..Config::default() };
    let played = Job::threads(2).device("shm").config(config).run(async |world| {
        let array = world.spread::<u64>(2).await?;
        world.barrier().await?;
        match world.rank() {
            0 => {
                // From then on process 1 serves nobody.
                while !computes.load(Ordering::Acquire) {
                    world.flush().await?;
                }
                waits(&world, &array).await?;
            }
            _ => {
                computes.store(true, Ordering::Release);
                let until = Instant::now() + PATIENCE;
                while !reports.have(expected) {
                    assert!(Instant::now() < until, "no report of {expected:?}: {reports:?}");
                    std::thread::sleep(Duration::from_millis(5));
                }
                answers(&world, &array).await?;
            }
        }
        world.barrier().await?;
        Ok(())
    });
    played.expect("both go on when process 1 does");
}

#[test]
fn in_a_collective() {
    child::alone(|| {
        reported(
            None,
            &["process 0 waits for process 1 in collective ", ", an all-reduce, for 0."],
            async |world, _| world.all_reduce(1, |a, b| a + b).await.map(drop),
            async |world, _| world.all_reduce(1, |a, b| a + b).await.map(drop),
        );
    });
}

#[test]
fn for_operations_on_the_memory_of_another() {
    child::alone(|| {
        reported(
            Some(Carrier::Messages),
            &["process 0 waits for operations on the memory of process 1 (1 requests)"],
            async |_, array| {
                let got = array.at(1).read().await?;
                assert_eq!(got, 0);
                Ok(())
            },
            async |world, _| world.flush().await,
        );
    });
}

#[test]
fn for_stores_of_others() {
    child::alone(|| {
        reported(
            None,
            &["process 0 waits in store_sync for 8 bytes from any process, of which 0 have come"],
            async |world, _| world.store_sync(8).await,
            async |world, array| {
                array.at(0).store(7)?;
                world.flush().await
            },
        );
    });
}

#[test]
fn for_a_change_of_its_memory() {
    child::alone(|| {
        reported(
            None,
            &["process 0 waits for any process to change its memory at offset "],
            async |_, array| {
                let seen = array.at(0).wait_until(|value| value == 7).await?;
                assert_eq!(seen, 7);
                Ok(())
            },
            async |_, array| array.at(0).write(7).await,
        );
    });
}
