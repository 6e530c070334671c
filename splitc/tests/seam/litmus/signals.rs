//! Signals of each type of numbers behind data of each length, by each carrier.

use doorbell_kit::effort;
use doorbell_splitc::{Atomic, Error, World};

use crate::litmus::{run, ways};

/// How many elements a process has.
const LEN: usize = 1200;

/// How the data lies in the memory of the process that gets the signal: blocks of elements, how
/// many blocks there are, and how many elements from each to the next.
const DATA: [(usize, usize, usize); 6] =
    [(1, 1, 1), (3, 1, 3), (64, 1, 64), (LEN, 1, LEN), (1, 40, 7), (90, 5, 200)];

/// Sends signals of one type behind data, `rounds` for each form of the data, and lets the other
/// process look at the data when it has got the signal.
async fn pass<S: Atomic + PartialOrd>(
    world: &World,
    rounds: u32,
    number: impl Fn(u32) -> S,
) -> Result<(), Error> {
    let data = world.blocked::<u64>(2 * LEN).await?;
    let (signals, back) = (world.spread::<S>(2).await?, world.spread::<u32>(2).await?);
    let (mut sent, first) = (0, data.pointer(LEN)?);
    for (len, blocks, step) in DATA {
        let span = world.span(first, len).strided(blocks, step);
        for _ in 0..rounds {
            sent += 1;
            if world.rank() == 0 {
                let values = vec![u64::from(sent); span.len()];
                let done = span.put_signal(&values, signals.at(1), number(1))?;
                // It is sent by a wait for it, by a sync, or by a wait for something else.
                match sent % 3 {
                    0 => done.done().await?,
                    1 => world.sync().await?,
                    _ => drop(done),
                }
                back.at(0).wait_until(|seen| seen == sent).await?;
            } else {
                let expected = number(sent);
                let found = signals.at(1).wait_until(|signals| signals >= expected).await?;
                let what = std::any::type_name::<S>();
                assert!(found == expected, "each signal is added once: {what}, round {sent}");
                let all = span.read().await?;
                let old = all.iter().position(|value| *value != u64::from(sent));
                assert_eq!(old, None, "{what}, {len} by {blocks}: {:?}", old.map(|at| all[at]));
                back.at(0).write(sent).await?;
            }
        }
    }
    signals.free().await?;
    data.free().await
}

#[test]
fn a_process_that_sees_a_signal_of_any_type_sees_the_data_behind_which_it_was_sent() {
    for (device, config) in ways() {
        let rounds = if device == "shm" { effort(4, 250) } else { effort(2, 50) };
        run(2, device, config, async move |world| {
            pass(&world, rounds, u64::from).await?;
            pass(&world, rounds, i64::from).await?;
            pass(&world, rounds, |number| number).await?;
            pass(&world, rounds, |number| number as i32).await?;
            pass(&world, rounds, f64::from).await?;
            pass(&world, rounds, |number| number as f32).await?;
            Ok(())
        });
    }
}
