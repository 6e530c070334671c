//! Who makes progress while a process computes and awaits nothing, or awaits what is done at once.

mod spinning;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_kit::PATIENCE;
use doorbell_splitc::{Apply, Carrier, Config, Error, Spread, World};
use doorbell_verbs::Progress;

use crate::common::{by, carriers, run};

const ADD: Apply<u64, u64, u64> = Apply::new("add", |value, by| {
    *value += by;
    *value
});
const ADD_LONG: Apply<[u64; 3], u64, u64> = Apply::new("add long", |value, by| {
    value[2] += by;
    value[2]
});

/// How far a process that computes has come: it has begun, and it has ended. Set by other means
/// than those that are tested, and even if a test panics.
#[derive(Clone, Default)]
struct Computation(Arc<AtomicUsize>);

const BEGUN: usize = 1;
const ENDED: usize = 2;

impl Computation {
    /// Computes, without a look at the world, until others end this.
    fn run(&self) {
        self.0.fetch_max(BEGUN, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < ENDED {
            std::hint::spin_loop();
        }
    }

    /// Waits until the other process computes, and ends that when this is dropped.
    async fn other(&self, world: &World) -> Result<Ends, Error> {
        let ends = Ends(self.0.clone());
        while self.0.load(Ordering::Acquire) < BEGUN {
            world.flush().await?;
            tokio::task::yield_now().await;
        }
        Ok(ends)
    }
}

struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(ENDED, Ordering::Release);
    }
}

/// Does everything to the memory of a process that awaits nothing.
async fn everything(
    world: &World,
    array: &Spread<u64>,
    long: &Spread<[u64; 3]>,
) -> Result<(), Error> {
    let (theirs, own) = (array.pointer(1000)?, world.allocate::<u64>(1000)?);
    let place = || world.at(theirs);
    let span = || world.span(theirs, 1000);
    place().write(1).await?;
    assert_eq!(place().read().await?, 1);
    place().put(2)?.done().await?;
    assert_eq!(place().get()?.done().await?, 2);
    assert_eq!(place().fetch_add(3).await?, 2);
    assert_eq!(place().swap(7).await?, 5);
    assert_eq!(place().compare_swap(7, 8).await?, 7);
    assert_eq!(place().fetch_max(9).await?, 8);
    assert_eq!(place().apply(ADD, 1).await?, 10);
    assert_eq!(long.at(1).apply(ADD_LONG, 4).await?, 4);
    span().write(&[5; 1000]).await?;
    assert_eq!(span().read().await?, [5; 1000]);
    world.copy(theirs, own, 1000)?.done().await?;
    world.copy(own, theirs.local_add(1), 999)?.done().await?;
    span().put_signal(&[6; 1000], place(), 1)?.done().await?;
    assert_eq!(array.gather(&[1000, 1001, 0])?.done().await?, [7, 6, 0]);
    array.scatter(&[1000, 1001], &[8, 9])?.done().await?;
    for index in 1000..2000 {
        array.at(index).store(index as u64)?;
        array.at(index).put_add(1)?;
    }
    world.sync().await?;
    // Whether stores are in, only their target says; here all of them come in the end.
    for index in [1000, 1999] {
        while array.at(index).read().await? < index as u64 {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

#[test]
fn in_dedicated_mode_a_process_that_computes_serves_all_that_others_ask() {
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            let computation = Computation::default();
            let progress = Progress::Dedicated { core: None };
            run(2, device, Config { progress, ..by(carrier) }, async move |world| {
                world.define(ADD).await?;
                world.define(ADD_LONG).await?;
                let array = world.blocked::<u64>(2000).await?;
                let long = world.spread::<[u64; 3]>(2).await?;
                world.barrier().await?;
                if world.rank() == 1 {
                    computation.run();
                } else {
                    let ends = computation.other(&world).await?;
                    everything(&world, &array, &long).await?;
                    drop(ends);
                }
                Ok(world.all_store_sync().await?)
            });
        }
    }
}

#[test]
fn in_inline_mode_mapped_memory_is_reached_while_its_process_computes() {
    let computation = Computation::default();
    run(2, "shm", by(Carrier::Mapped), async move |world| {
        let array = world.blocked::<u64>(2000).await?;
        world.barrier().await?;
        if world.rank() == 1 {
            computation.run();
        } else {
            let ends = computation.other(&world).await?;
            array.at(1000).write(1).await?;
            array.at(1000).fetch_add(1).await?;
            world.span(array.pointer(1001)?, 999).write(&[3; 999]).await?;
            array.at(1001).put(4)?;
            array.at(1002).store(5)?;
            world.sync().await?;
            assert_eq!(array.gather(&[1000, 1001, 1002, 1999])?.done().await?, [2, 4, 5, 3]);
            drop(ends);
        }
        Ok(world.all_store_sync().await?)
    });
}

#[test]
fn in_inline_mode_all_else_is_done_when_the_process_awaits_something_at_the_latest() {
    for device in ["shm", "udp"] {
        for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
            let computation = Computation::default();
            run(2, device, by(carrier), async move |world| {
                let array = world.blocked::<u64>(2000).await?;
                world.barrier().await?;
                if world.rank() == 1 {
                    computation.run();
                } else {
                    let ends = computation.other(&world).await?;
                    let (put, got) = (array.at(1000).put(1)?, array.at(1001).get()?);
                    let many = world.span(array.pointer(1002)?, 900).get()?;
                    // There are credits for all of it, although the other process gives none back.
                    world.flush().await?;
                    drop(ends);
                    world.sync().await?;
                    assert!(put.is_done() && got.is_done() && many.is_done());
                }
                Ok(world.barrier().await?)
            });
        }
    }
}

#[test]
fn in_inline_mode_a_poll_now_and_then_serves_others() {
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            let computation = Computation::default();
            run(2, device, by(carrier), async move |world| {
                world.define(ADD).await?;
                world.define(ADD_LONG).await?;
                let array = world.blocked::<u64>(2000).await?;
                let long = world.spread::<[u64; 3]>(2).await?;
                world.barrier().await?;
                if world.rank() == 1 {
                    computation.0.fetch_max(BEGUN, Ordering::AcqRel);
                    while computation.0.load(Ordering::Acquire) < ENDED {
                        world.poll();
                    }
                } else {
                    let ends = computation.other(&world).await?;
                    everything(&world, &array, &long).await?;
                    drop(ends);
                }
                Ok(world.all_store_sync().await?)
            });
        }
    }
}

/// A store that lets other tasks of its thread run while it waits for room.
#[derive(Clone, Copy, Debug)]
enum Soon {
    Store,
    Add,
    Span,
}

#[test]
fn a_store_that_is_awaited_lets_other_tasks_of_its_thread_run_while_there_is_no_credit() {
    for device in ["shm", "udp"] {
        for (carrier, soon) in [
            (Carrier::Messages, Soon::Store),
            (Carrier::Messages, Soon::Add),
            (Carrier::Messages, Soon::Span),
            (Carrier::Mixed, Soon::Store),
            (Carrier::Mixed, Soon::Add),
            (Carrier::Mixed, Soon::Span),
            // RDMA has no addition without an answer.
            (Carrier::OneSided, Soon::Add),
        ] {
            let computation = Computation::default();
            // A peer that is deaf for a while is not to be taken for dead.
            let config = Config { credits: 1, patience: PATIENCE, ..by(carrier) };
            run(2, device, config, async move |world| {
                let array = world.blocked::<u64>(40).await?;
                world.barrier().await?;
                if world.rank() == 1 {
                    computation.run();
                } else {
                    let ends = computation.other(&world).await?;
                    let span = world.span(array.pointer(20)?, 4);
                    let store = async {
                        for _ in 0..10_000 {
                            match soon {
                                Soon::Store => array.at(20).store_async(7).await?,
                                Soon::Add => array.at(20).store_add_async(7).await?,
                                Soon::Span => span.store_async(&[7; 4]).await?,
                            }
                        }
                        Ok::<_, Error>(())
                    };
                    // The other process goes on, and takes what was stored, when this task lets it.
                    let other = async {
                        for _ in 0..100 {
                            tokio::task::yield_now().await;
                        }
                        drop(ends);
                    };
                    let (stored, ()) = tokio::join!(store, other);
                    stored?;
                }
                world.all_store_sync().await?;
                let expected = if matches!(soon, Soon::Add) { 70_000 } else { 7 };
                assert_eq!(array.at(20).read().await?, expected, "{device}, {carrier}, {soon:?}");
                Ok(world.barrier().await?)
            });
        }
    }
}
