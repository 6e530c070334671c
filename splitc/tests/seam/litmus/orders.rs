//! Who finds one access done finds those done that came before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_kit::effort;
use doorbell_splitc::{Carrier, Config, Error, World};

use crate::litmus::{run, ways};

/// How data is written before a flag is, or together with it.
#[derive(Clone, Copy, Debug)]
enum Passing {
    WriteAndWrite,
    PutSyncAndPut,
    PutDoneAndAdd,
    Signal,
    StoresCounted,
}

async fn pass(world: &World, passing: Passing, rounds: u64) -> Result<(), Error> {
    let other = 1 - world.rank();
    let data = world.blocked::<[u32; 3]>(2 * 40).await?;
    // A flag of eight bytes and one of four: a signal that RDMA adds has eight.
    let (flags, small) = (world.spread::<u64>(2).await?, world.spread::<u32>(2).await?);
    let theirs = world.span(data.pointer(40 * other)?, 40);
    let own = world.span(data.pointer(40 * world.rank())?, 40);
    for round in 1..=rounds {
        if world.rank() == 0 {
            let values = [[round as u32; 3]; 40];
            match passing {
                Passing::WriteAndWrite => {
                    theirs.write(&values).await?;
                    small.at(other).write(round as u32).await?;
                }
                Passing::PutSyncAndPut => {
                    for (at, value) in values.iter().enumerate() {
                        data.at(40 * other + at).put(*value)?;
                    }
                    world.sync().await?;
                    flags.at(other).put(round)?;
                    world.flush().await?;
                }
                Passing::PutDoneAndAdd => {
                    theirs.put(&values)?.done().await?;
                    small.at(other).fetch_add(1).await?;
                }
                Passing::Signal => {
                    theirs.put_signal(&values, flags.at(other), 1)?;
                    world.flush().await?;
                }
                Passing::StoresCounted => {
                    theirs.store(&values[..])?;
                    world.flush().await?;
                }
            }
            // The next round begins when this one was looked at.
            flags.at(0).wait_until(|seen| seen >= round).await?;
        } else {
            match passing {
                Passing::WriteAndWrite | Passing::PutDoneAndAdd => {
                    small.at(1).wait_until(|flag| flag >= round as u32).await.map(drop)?;
                }
                Passing::PutSyncAndPut | Passing::Signal => {
                    flags.at(1).wait_until(|flag| flag >= round).await.map(drop)?;
                }
                Passing::StoresCounted => world.store_sync(40 * 12).await?,
            }
            assert_eq!(own.read().await?, [[round as u32; 3]; 40], "{passing:?}, round {round}");
            flags.at(0).write(round).await?;
        }
    }
    world.barrier().await
}

#[test]
fn who_sees_the_flag_sees_the_data() {
    for (device, config) in ways() {
        let rounds = if device == "shm" { effort(150, 2000) } else { effort(30, 300) };
        for passing in [
            Passing::WriteAndWrite,
            Passing::PutSyncAndPut,
            Passing::PutDoneAndAdd,
            Passing::Signal,
            Passing::StoresCounted,
        ] {
            run(2, device, config.clone(), async move |world| {
                Ok(pass(&world, passing, rounds).await?)
            });
        }
    }
}

#[test]
fn behind_a_barrier_all_that_was_written_before_is_there() {
    for (device, config) in ways() {
        let rounds = if device == "shm" { effort(100, 1000) } else { effort(20, 200) };
        run(3, device, config, async move |world| {
            let (rank, size) = (world.rank(), world.size());
            let array = world.spread::<u64>(size * size).await?;
            for round in 1..=rounds {
                for other in 0..size {
                    // The element of each other process that is mine.
                    array.at(other + size * rank).write(round).await?;
                }
                match round % 3 {
                    0 => world.barrier().await?,
                    1 => world.arrive()?.done().await?,
                    _ => drop(world.all_gather(round).await?),
                }
                for from in 0..size {
                    let at = (rank + round as usize) % size + size * from;
                    assert_eq!(array.at(at).read().await?, round);
                }
                world.barrier().await?;
            }
            Ok(())
        });
    }
}

#[test]
fn behind_an_all_store_sync_all_stores_are_in() {
    for (device, config) in ways() {
        let rounds = if device == "shm" { effort(100, 1000) } else { effort(20, 200) };
        run(3, device, config, async move |world| {
            let (rank, size) = (world.rank(), world.size());
            let array = world.spread::<u64>(size * size).await?;
            let sums = world.spread::<u64>(size).await?;
            for round in 1..=rounds {
                for other in 0..size {
                    array.at(other + size * rank).store(round)?;
                    sums.at(other).store_add(round)?;
                }
                world.all_store_sync().await?;
                for from in 0..size {
                    assert_eq!(array.at(rank + size * from).read().await?, round);
                }
                let expected = size as u64 * round * (round + 1) / 2;
                assert_eq!(sums.at((rank + 1) % size).read().await?, expected);
                world.barrier().await?;
            }
            Ok(())
        });
    }
}

/// Threads that come to a round at the same moment, by other means than those that are tested.
#[derive(Clone, Default)]
struct Rendezvous(Arc<AtomicU64>);

impl Rendezvous {
    fn meet(&self, world: &World, round: u64) {
        let all = world.size() as u64;
        self.0.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.0.load(Ordering::Acquire) < all * (round + 1) {
            looks += 1;
            // Mostly nothing but this, so that all go on at one moment. But others may have to be
            // served first, or need the processor.
            if looks.is_multiple_of(256) {
                world.poll();
                std::thread::yield_now();
            }
        }
    }
}

/// Each of two processes writes a word and reads the word that the other one writes: if the writes
/// are done before the reads begin, at least one of the two finds what the other has written.
#[test]
fn of_two_that_write_and_sync_and_then_read_one_sees_the_other() {
    for (device, config) in ways() {
        let rounds = match (device, config.carrier) {
            (_, Some(Carrier::Mapped)) => effort(10_000, 50_000),
            ("shm", _) => effort(1000, 5000),
            _ => effort(40, 400),
        };
        let config = Config { heap: 256 << 20, ..config };
        for own in [false, true] {
            let met = Rendezvous::default();
            run(2, device, config.clone(), async move |world| {
                let (rank, len) = (world.rank(), 16 * rounds as usize);
                // A word for each round, and none beside another of the same round.
                let words = world.blocked::<u64>(2 * len).await?;
                let (mine, theirs) = if own { (rank, 1 - rank) } else { (1 - rank, rank) };
                let mut found = Vec::new();
                for round in 0..rounds {
                    let at = 16 * round as usize;
                    met.meet(&world, round);
                    words.at(mine * len + at).put(1)?;
                    world.sync().await?;
                    found.push(words.at(theirs * len + at).read().await?);
                }
                let all = world.all_gather_vec(&found).await?;
                for (round, (one, other)) in all[0].iter().zip(&all[1]).enumerate() {
                    assert!(one + other > 0, "{device}, own {own}, round {round}: both were late");
                }
                Ok(())
            });
        }
    }
}

/// Two processes write a word each, and two others read both, in different orders.
#[test]
fn independent_writes_are_seen_in_one_order_by_all() {
    for (device, config) in ways() {
        let rounds = if device == "shm" { effort(200, 2000) } else { effort(20, 200) };
        let met = Rendezvous::default();
        run(4, device, config, async move |world| {
            let (rank, rounds) = (world.rank(), rounds as usize);
            let words = world.blocked::<u64>(4 * 8 * rounds).await?;
            let word = |of: usize, round: usize| words.at(8 * (of * rounds + round));
            let mut found = Vec::new();
            for round in 0..rounds {
                met.meet(&world, round as u64);
                found.push(match rank {
                    0 | 1 => {
                        word(rank, round).write(1).await?;
                        [0, 0]
                    }
                    _ => {
                        let first = word(rank - 2, round).read().await?;
                        [first, word(3 - rank, round).read().await?]
                    }
                });
            }
            let all = world.all_gather_vec(&found).await?;
            for (round, (one, other)) in all[2].iter().zip(&all[3]).enumerate() {
                let contradict = *one == [1, 0] && *other == [1, 0];
                assert!(!contradict, "{device}, round {round}: each saw its own order");
            }
            Ok(())
        });
    }
}
