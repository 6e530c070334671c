//! Atomic changes without an acknowledgement, a few of which a process may keep for a moment: at
//! each point where a program may rely on them all of them are made, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_splitc::{Atomic, Carrier, Config, Error, Spread, World, operators};

use crate::common::{by, carriers, config};
use crate::litmus::{run, ways};

/// An operation that sends and makes all changes of this process that wait.
#[derive(Clone, Copy, Debug)]
enum Point {
    Flush,
    Sync,
    Barrier,
    SplitBarrier,
    AllStoreSync,
    AllReduce,
    BegunReduction,
    Broadcast,
    WaitForAWord,
    StoreSync,
    Allocate,
    Private,
    ManyReads,
}

const POINTS: [Point; 13] = [
    Point::Flush,
    Point::Sync,
    Point::Barrier,
    Point::SplitBarrier,
    Point::AllStoreSync,
    Point::AllReduce,
    Point::BegunReduction,
    Point::Broadcast,
    Point::WaitForAWord,
    Point::StoreSync,
    Point::Allocate,
    Point::Private,
    Point::ManyReads,
];

/// Does, in both of two processes, what makes the changes of each.
async fn pass(world: &World, point: Point, beside: &Spread<u64>) -> Result<(), Error> {
    match point {
        Point::Flush => world.flush().await,
        Point::Sync => world.sync().await,
        Point::Barrier => world.barrier().await,
        Point::SplitBarrier => world.arrive()?.done().await,
        Point::AllStoreSync => world.all_store_sync().await,
        Point::AllReduce => world.all_reduce(1_u64, operators::sum).await.map(drop),
        Point::BegunReduction => {
            world.all_reduce(1_u64, operators::sum).begin()?.done().await.map(drop)
        }
        Point::Broadcast => world.broadcast(0, 1_u64).await.map(drop),
        Point::WaitForAWord => beside.at(world.rank()).wait_until(|_| true).await.map(drop),
        Point::StoreSync => world.store_sync(0).await,
        Point::Allocate => world.spread::<u64>(1).await?.free().await,
        Point::Private => {
            drop(beside.private().await?);
            beside.share().await
        }
        Point::ManyReads => {
            // Operations that are done at once send what waits now and then.
            for _ in 0..5000 {
                beside.at(world.rank()).read().await?;
            }
            Ok(())
        }
    }
}

/// Waits, by means other than those that are tested, until all of so many processes have come.
async fn meet(world: &World, count: &AtomicUsize, all: usize) {
    count.fetch_add(1, Ordering::AcqRel);
    while count.load(Ordering::Acquire) < all {
        world.poll();
        tokio::task::yield_now().await;
    }
}

#[test]
fn mapped_changes_are_made_at_each_point_at_which_a_process_sends_what_waits() {
    let met = Arc::new(AtomicUsize::new(0));
    run(2, "shm", by(Carrier::Mapped), async move |world| {
        let words = world.blocked::<u64>(200).await?;
        let beside = world.spread::<u64>(2).await?;
        let (own, other) = (100 * world.rank(), 100 * (1 - world.rank()));
        let mut all = 0;
        for (number, point) in POINTS.into_iter().enumerate() {
            // Fewer than are kept at most, as many, and more.
            for (turn, count) in [1, 7, 16, 17, 40].into_iter().enumerate() {
                for at in 0..count {
                    words.at(other + at).store_add(1)?;
                }
                pass(&world, point, &beside).await?;
                all += 2;
                meet(&world, &met, all).await;
                let found = world.span(words.pointer(own)?, 100).read().await?;
                let expected = |at: usize| {
                    let before = [1, 7, 16, 17, 40].into_iter().take(turn + 1);
                    let in_turns = before.filter(|count| at < *count).count();
                    let whole = [1, 7, 16, 17, 40].into_iter().filter(|count| at < *count).count();
                    (number * whole + in_turns) as u64
                };
                let expected: Vec<_> = (0..100).map(expected).collect();
                assert_eq!(found, expected, "{point:?}, {count} changes");
                all += 2;
                meet(&world, &met, all).await;
            }
        }
        world.barrier().await.map_err(Into::into)
    });
}

/// Changes numbers of one type in the memory of all processes, some of which are changed by all of
/// them at the same time.
async fn change_all<T: Atomic>(
    world: &World,
    luck: &mut Luck,
    count: usize,
    number: impl Fn(u64) -> T,
) -> Result<(), Error> {
    let (size, each) = (world.size(), 5);
    let sums = world.spread::<T>(size * each).await?;
    let (least, most) =
        (world.spread::<T>(size * each).await?, world.spread::<T>(size * each).await?);
    for index in sums.own_indices() {
        least.at(index).write(number(1000)).await?;
    }
    world.barrier().await?;
    let mut added = vec![0_u64; size * each];
    let mut extremes = vec![[1000_u64, 0]; size * each];
    for _ in 0..count {
        let index = luck.below((size * each) as u64) as usize;
        let value = luck.below(1000);
        match luck.below(4) {
            0 => {
                least.at(index).store_min(number(value))?;
                extremes[index][0] = extremes[index][0].min(value);
            }
            1 => {
                most.at(index).store_max(number(value))?;
                extremes[index][1] = extremes[index][1].max(value);
            }
            2 => {
                sums.at(index).store_add_async(number(value % 4)).await?;
                added[index] += value % 4;
            }
            _ => {
                sums.at(index).store_add(number(value % 4))?;
                added[index] += value % 4;
            }
        }
    }
    world.all_store_sync().await?;
    let added = world.all_reduce_vec(&added, operators::sum).await?;
    let lowest: Vec<_> = extremes.iter().map(|pair| pair[0]).collect();
    let highest: Vec<_> = extremes.iter().map(|pair| pair[1]).collect();
    let lowest = world.all_reduce_vec(&lowest, operators::min).await?;
    let highest = world.all_reduce_vec(&highest, operators::max).await?;
    for index in 0..size * each {
        assert!(sums.at(index).read().await? == number(added[index]), "sum {index}");
        assert!(least.at(index).read().await? == number(lowest[index]), "least {index}");
        assert!(most.at(index).read().await? == number(highest[index]), "most {index}");
    }
    world.barrier().await
}

#[test]
fn behind_an_all_store_sync_changes_of_all_types_by_all_processes_are_made_once() {
    for (device, config) in ways() {
        let count = if device == "shm" { effort(600, 50_000) } else { effort(300, 10_000) };
        run(3, device, config, async move |world| {
            let mut luck = Luck::stream(3, world.rank() as u32);
            change_all(&world, &mut luck, count, |number| number).await?;
            change_all(&world, &mut luck, count, |number| number as i64).await?;
            change_all(&world, &mut luck, count, |number| number as f64).await?;
            change_all(&world, &mut luck, count, |number| number as u32).await?;
            change_all(&world, &mut luck, count, |number| number as i32).await?;
            change_all(&world, &mut luck, count, |number| number as f32).await?;
            Ok(())
        });
    }
}

#[test]
fn counted_changes_are_made_though_their_process_awaits_nothing() {
    let met = Arc::new(AtomicUsize::new(0));
    run(2, "shm", by(Carrier::Mapped), async move |world| {
        let words = world.blocked::<u64>(2000).await?;
        for round in 1..=effort(20, 2000) {
            if world.rank() == 0 {
                // 4096 bytes are counted without a further call.
                for at in 0..512 {
                    words.at(1000 + at).store_add(1)?;
                }
                while met.load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
            } else {
                world.store_sync(4096).await?;
                let found = world.span(words.pointer(1000)?, 512).read().await?;
                assert_eq!(found, [round as u64; 512]);
                met.store(round, Ordering::Release);
            }
        }
        Ok(world.all_store_sync().await?)
    });
}

#[test]
fn changes_by_one_carrier_are_made_though_the_next_ones_go_by_another() {
    let all = carriers("shm");
    run(3, "shm", config(), async move |world| {
        let (own, size) = (world.rank(), world.size());
        let words = world.spread::<u64>(6 * size).await?;
        let mut luck = Luck::stream(11, own as u32);
        let mut changed = vec![0_u64; 6 * size];
        for round in 0..effort(40, 4000) {
            let before = changed.clone();
            for _ in 0..4 {
                for rank in 0..size {
                    world.set_carrier(rank, all[luck.below(all.len() as u64) as usize])?;
                    // Fewer or more than are kept at most.
                    for _ in 0..3 + luck.below(20) {
                        let index = rank + size * luck.below(6) as usize;
                        words.at(index).store_add(1)?;
                        changed[index] += 1;
                    }
                }
            }
            let sums = if round % 2 == 0 {
                world.all_store_sync().await?;
                world.all_reduce_vec(&changed, operators::sum).await?
            } else {
                // Each process waits for what all of them have stored there in this round.
                let new: Vec<_> = changed.iter().zip(&before).map(|(new, old)| new - old).collect();
                let new = world.all_reduce_vec(&new, operators::sum).await?;
                let here: u64 = new.iter().skip(own).step_by(size).sum();
                world.store_sync(8 * here).await?;
                world.all_reduce_vec(&changed, operators::sum).await?
            };
            for index in words.own_indices() {
                assert_eq!(words.at(index).read().await?, sums[index], "round {round}");
            }
            // So that what is counted in the next round is counted from zero.
            world.all_store_sync().await?;
        }
        Ok(())
    });
}

#[test]
fn changes_of_a_process_whose_program_ends_at_once_are_made() {
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            for count in [1, 16, 17, 600] {
                let config = Config { credits: 2, ..by(carrier) };
                run(3, device, config, async move |world| {
                    let words = world.blocked::<u32>(3 * 100).await?;
                    if world.rank() > 0 {
                        for at in 0..count {
                            words.at(at % 100).store_add(1)?;
                        }
                        return Ok(());
                    }
                    let count = count as u64;
                    world.store_sync(2 * 4 * count).await?;
                    let all = world.span(words.pointer(0)?, 100).read().await?;
                    let sum: u64 = all.iter().copied().map(u64::from).sum();
                    assert_eq!(sum, 2 * count, "{device}, {carrier}");
                    Ok(())
                });
            }
        }
    }
}

#[test]
fn changes_of_the_own_memory_are_made_when_they_are_counted() {
    for (device, config) in ways() {
        run(2, device, config, async |world| {
            let words = world.spread::<i64>(2).await?;
            let own = || words.at(world.rank());
            for round in 1..100 {
                own().store_add(2)?;
                own().store_max(round)?;
                world.store_sync(16).await?;
                let found = own().read().await?;
                assert!(found >= 2 * round, "{found} in round {round}");
            }
            Ok(world.barrier().await?)
        });
    }
}
