//! Waiting for a write or a store when the programs of other processes have ended without an error.

use std::time::Duration;

use doorbell_kit::effort;
use doorbell_splitc::{Error, Spread, World};
use tokio::time::timeout;

use crate::common::{by, carriers, run};
use crate::ends::Count;

/// The thing that process 0 waits for.
#[derive(Clone, Copy, Debug)]
enum Waits {
    ForAWord,
    ForAStore,
}

const BOTH: [Waits; 2] = [Waits::ForAWord, Waits::ForAStore];

/// Waits until another process has written 7, or stored 8 bytes, here.
async fn wait(world: &World, array: &Spread<u64>, waits: Waits) -> Result<(), Error> {
    match waits {
        Waits::ForAWord => array.at(0).wait_until(|value| value == 7).await.map(drop),
        Waits::ForAStore => world.store_sync(8).await,
    }
}

/// Writes or stores what process 0 waits for.
async fn serve(array: &Spread<u64>, waits: Waits) -> Result<(), Error> {
    match waits {
        Waits::ForAWord => array.at(0).write(7).await,
        Waits::ForAStore => array.at(0).store(7),
    }
}

/// Runs a program in so many processes over each device, by each carrier, for both ways to wait.
#[track_caller]
fn by_each<F>(sizes: &[usize], program: F)
where
    F: AsyncFn(World, Spread<u64>, Waits) -> Result<(), Error> + Send + Sync + Clone + 'static,
{
    for device in ["shm", "udp"] {
        for (&carrier, &size) in
            carriers(device).iter().flat_map(|one| sizes.iter().map(move |size| (one, size)))
        {
            for waits in BOTH {
                println!("{device}, {carrier}, {size} processes, {waits:?}");
                let program = program.clone();
                run(size, device, by(carrier), async move |world| {
                    let array = world.spread::<u64>(world.size()).await?;
                    Ok(program(world, array, waits).await?)
                });
            }
        }
    }
}

#[test]
fn whoever_waits_for_a_write_when_all_other_programs_have_ended_is_told_so() {
    by_each(&[2, 3], async |world, array, waits| {
        if world.rank() == 0 {
            let why = wait(&world, &array, waits).await.expect_err("nobody writes");
            assert!(why.gone().is_some_and(|rank| rank > 0), "{why}");
            assert!(why.to_string().contains("ended"), "{why}");
            // A later attempt ends as well.
            assert!(wait(&world, &array, waits).await.is_err());
        }
        Ok(())
    });
}

#[test]
fn a_process_that_is_alone_waits_for_its_own_writes_only() {
    for waits in BOTH {
        run(1, "shm", crate::common::config(), async move |world| {
            let array = world.spread::<u64>(1).await?;
            let serve = async {
                serve(&array, waits).await?;
                // The store is counted when its process awaits something.
                world.flush().await
            };
            let (waited, served) = tokio::join!(wait(&world, &array, waits), serve);
            Ok(waited.and(served)?)
        });
    }
}

#[test]
fn what_a_program_has_written_before_its_end_is_found_rather_than_the_end() {
    by_each(&[2, 3], async |world, array, waits| {
        for _ in 0..effort(3, 100) {
            world.barrier().await?;
        }
        // Whoever is last.
        if world.rank() == world.size() - 1 {
            serve(&array, waits).await?;
        }
        if world.rank() == 0 {
            wait(&world, &array, waits).await?;
            assert_eq!(array.at(0).read().await?, 7);
        }
        Ok(())
    });
}

#[test]
fn while_another_program_runs_the_end_of_one_is_no_reason_to_give_up() {
    let waiting = Count::default();
    let mut runs = 0;
    for (device, carrier) in ["shm", "udp"]
        .into_iter()
        .flat_map(|device| carriers(device).iter().map(move |one| (device, *one)))
    {
        for waits in BOTH {
            runs += 1;
            let (waiting, expected) = (waiting.clone(), runs);
            run(3, device, by(carrier), async move |world| {
                let array = world.spread::<u64>(3).await?;
                match world.rank() {
                    0 => {
                        // Process 1 has ended, or will have in a moment.
                        let soon = Duration::from_millis(20);
                        let waited = timeout(soon, wait(&world, &array, waits)).await;
                        assert!(waited.is_err(), "{device}, {carrier}, {waits:?}: {waited:?}");
                        waiting.one_more();
                        wait(&world, &array, waits).await?;
                    }
                    1 => {}
                    _ => {
                        waiting.reaches(expected, &world).await;
                        serve(&array, waits).await?;
                    }
                }
                Ok(())
            });
        }
    }
}
