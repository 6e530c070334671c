//! Atomic changes are in one order for all processes, whatever carries them.

use doorbell_kit::effort;
use doorbell_splitc::{Apply, Carrier, Element, Error, Place, World};

use crate::common::{config, run};

const ADD: Apply<u64, u64, u64> = Apply::new("add", |value, by| {
    let before = *value;
    *value += by;
    before
});
const COUNT: Apply<[u64; 3], u64, u64> = Apply::new("count", |value, by| {
    assert_eq!(value[0], value[2], "nobody sees a part of a change");
    value[0] += by;
    value[1] ^= value[0];
    value[2] = value[0];
    value[0] - by
});

/// Has each of four processes reach all others by another carrier.
fn mix(world: &World) -> Result<(), Error> {
    let all = [Carrier::Mapped, Carrier::OneSided, Carrier::Messages, Carrier::Mixed];
    (0..world.size()).try_for_each(|rank| world.set_carrier(rank, all[world.rank() % 4]))
}

/// Checks that all processes together have found each of so many numbers once.
async fn each_once(world: &World, found: &[u64]) -> Result<(), Error> {
    let mut all = world.all_gather_vec(found).await?.concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..all.len() as u64), "some found the same, and some was lost");
    Ok(())
}

#[test]
fn each_addition_finds_another_number() {
    for owner in 0..4 {
        run(4, "shm", config(), async move |world| {
            mix(&world)?;
            world.define(ADD).await?;
            let words = world.spread::<u64>(8).await?;
            let word = || words.at(owner);
            let mut found = Vec::new();
            for round in 0..effort(200, 4000) {
                match round % 4 {
                    0 => found.push(word().fetch_add(1).await?),
                    1 => found.push(word().apply(ADD, 1).await?),
                    2 => loop {
                        let before = word().read().await?;
                        if word().compare_swap(before, before + 1).await? == before {
                            break found.push(before);
                        }
                    },
                    _ => {
                        let adds: Vec<_> =
                            (0..9).map(|_| word().get_add(1)).collect::<Result<_, _>>()?;
                        world.sync().await?;
                        for add in adds {
                            found.push(add.value()?);
                        }
                    }
                }
            }
            each_once(&world, &found).await?;
            // Additions without an answer are lost neither.
            let expected = words.at(owner).read().await?;
            world.barrier().await?;
            for _ in 0..100 {
                word().store_add(1)?;
                word().put_add(1)?;
            }
            world.all_store_sync().await?;
            assert_eq!(word().read().await?, expected + 4 * 200);
            Ok(world.barrier().await?)
        });
    }
}

#[test]
fn each_swap_finds_what_another_has_left() {
    run(4, "shm", config(), async |world| {
        mix(&world)?;
        let words = world.spread::<u64>(4).await?;
        for owner in 0..4 {
            let rounds = effort(300, 4000);
            let mut found = Vec::new();
            for round in 0..rounds {
                let new = 1 + world.rank() as u64 * rounds + round;
                found.push(words.at(owner).swap(new).await?);
            }
            world.barrier().await?;
            // The last one's number is the one that nobody has found.
            if world.rank() == 0 {
                found.push(words.at(owner).read().await?);
            }
            each_once(&world, &found).await?;
        }
        Ok(())
    });
}

#[test]
fn a_function_of_a_long_value_runs_alone() {
    run(4, "shm", config(), async |world| {
        mix(&world)?;
        world.define(COUNT).await?;
        let values = world.spread::<[u64; 3]>(4).await?;
        for owner in 0..4 {
            let mut found = Vec::new();
            for _ in 0..effort(100, 1000) {
                found.push(values.at(owner).apply(COUNT, 1).await?);
                let two =
                    [values.at(owner).get_apply(COUNT, 1)?, values.at(owner).get_apply(COUNT, 1)?];
                world.sync().await?;
                for one in two {
                    found.push(one.value()?);
                }
            }
            each_once(&world, &found).await?;
        }
        Ok(world.barrier().await?)
    });
}

/// Writes a value in one of several ways, and waits until it is there.
async fn write<T: Element>(
    world: &World,
    place: Place<'_, T>,
    way: usize,
    value: T,
) -> Result<(), Error> {
    let ptr = place.pointer();
    match way % 3 {
        0 => place.write(value).await,
        1 => place.put(value)?.done().await,
        _ => world.span(ptr, 1).write(&[value]).await,
    }
}

#[test]
fn numbers_that_share_a_word_do_not_disturb_each_other() {
    run(4, "shm", config(), async |world| {
        mix(&world)?;
        let rank = world.rank();
        for owner in 0..4 {
            let bytes = world.blocked::<u8>(4 * 8).await?;
            let shorts = world.blocked::<u16>(4 * 4).await?;
            let halves = world.blocked::<u32>(4 * 4).await?;
            let floats = world.blocked::<f32>(4 * 4).await?;
            world.barrier().await?;
            for round in 1..=effort(200, 2000) {
                write(&world, bytes.at(8 * owner + rank), round, round as u8).await?;
                write(&world, bytes.at(8 * owner + 4 + rank), round + 1, !(round as u8)).await?;
                write(&world, shorts.at(4 * owner + rank), round, round as u16).await?;
                // Two are changed atomically, and two are written.
                if rank < 2 {
                    halves.at(4 * owner + rank).fetch_add(1).await?;
                    floats.at(4 * owner + 3 - rank).put_add(1.0)?.done().await?;
                } else {
                    write(&world, halves.at(4 * owner + rank), round, round as u32).await?;
                    write(&world, floats.at(4 * owner + 3 - rank), round, round as f32).await?;
                }
                assert_eq!(bytes.at(8 * owner + rank).read().await?, round as u8);
                assert_eq!(bytes.at(8 * owner + 4 + rank).read().await?, !(round as u8));
                assert_eq!(shorts.at(4 * owner + rank).read().await?, round as u16);
                assert_eq!(halves.at(4 * owner + rank).read().await?, round as u32);
                assert_eq!(floats.at(4 * owner + 3 - rank).read().await?, round as f32);
            }
            world.barrier().await?;
        }
        Ok(())
    });
}

#[test]
fn an_aligned_number_is_never_seen_half_written_nor_older_than_before() {
    run(4, "shm", config(), async |world| {
        mix(&world)?;
        for owner in 0..4 {
            let words = world.spread::<u64>(4).await?;
            let word = || words.at(owner);
            let rounds = effort(500, 10_000);
            // All bytes of what is written count alike, so a mixture of two would show.
            let pattern = |round: u64| (round % 251) * 0x0101_0101_0101_0101;
            if world.rank() == owner {
                for round in 0..=rounds {
                    word().write(pattern(round)).await?;
                    // Others are served, and read meanwhile.
                    world.flush().await?;
                }
            } else if world.rank() == (owner + 1) % 4 {
                let other = || words.at((owner + 1) % 4);
                other().write(0).await?;
                for round in 0..rounds {
                    let found = word().read().await?;
                    assert_eq!(found, pattern(found & 0xff), "{found:#x} is a mixture");
                    other().write(round).await?;
                }
            } else {
                let mut last = 0;
                for _ in 0..rounds {
                    let found = words.at((owner + 1) % 4).read().await?;
                    assert!(found >= last, "{found} was seen behind {last}");
                    last = found;
                }
            }
            world.barrier().await?;
        }
        Ok(())
    });
}
