//! Functions that panic at the process that owns the value, among others in the same message, and
//! functions of one name with different code.

use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_splitc::{Apply, Carrier, Error, ErrorKind, World};

use crate::common::{by, run};
use crate::errors::by_each;

/// A value that is changed by its owner, and so by messages, whatever the carrier is.
type Large = [u64; 9];

const ADD: Apply<Large, u64, u64> = Apply::new("add", |value, by| {
    assert!(by != 13, "as it should");
    value[8] += by;
    value[8]
});

/// Runs a program as two processes by each carrier that sends messages.
fn by_messages<F>(program: F)
where
    F: AsyncFn(World) -> Result<(), Error> + Send + Sync + Copy + 'static,
{
    for device in ["shm", "udp"] {
        for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
            run(2, device, by(carrier), async move |world| Ok(program(world).await?));
        }
    }
}

#[track_caller]
fn is_refused(why: &Error, by: usize) {
    let ErrorKind::Refused { rank, count } = *why.kind() else { panic!("{why}") };
    assert_eq!((rank, count), (by, 1), "{why}");
}

#[test]
fn a_function_that_panics_fails_alone_and_its_neighbours_in_the_message_have_their_results() {
    by_messages(async |world| {
        world.define(ADD).await?;
        let large = world.spread::<Large>(2).await?;
        let words = world.spread::<u64>(2).await?;
        if world.rank() == 0 {
            words.at(1).write(100).await?;
            let before = large.at(1).get_apply(ADD, 5)?;
            let one = large.at(1).get_apply(ADD, 13)?;
            let behind = large.at(1).get_apply(ADD, 7)?;
            let added = words.at(1).get_add(3)?;
            let put = words.at(1).put_add(10)?;
            let other = large.at(1).get_apply(ADD, 13)?;
            let last = large.at(1).get_apply(ADD, 1)?;
            let Err(why) = world.sync().await else { panic!("the sync says nothing") };
            assert!(matches!(why.kind(), ErrorKind::Refused { rank: 1, count: 2 }), "{why}");
            world.sync().await.expect("a failure is told once");
            let results = [before.value()?, behind.value()?, last.value()?];
            assert_eq!(results, [5, 12, 13]);
            assert_eq!(added.value()?, 100);
            put.done().await?;
            assert!(one.value().is_err() && other.value().is_err());
            assert_eq!(words.at(1).read().await?, 113);
            assert_eq!(large.at(1).read().await?[8], 13);
        }
        world.barrier().await?;
        assert_eq!(world.refused(), if world.rank() == 1 { 2 } else { 0 });
        world.barrier().await
    });
}

#[test]
fn whichever_functions_of_a_message_panic_exactly_those_fail() {
    by_messages(async |world| {
        world.define(ADD).await?;
        let large = world.spread::<Large>(2).await?;
        let words = world.spread::<u64>(2).await?;
        let other = 1 - world.rank();
        let mut luck = Luck::stream(5, world.rank() as u32);
        let (mut sum, mut panics) = (0, 0);
        for _ in 0..effort(20, 100) {
            // As many as go in a message, and now and then in two.
            let count = 1 + luck.below(300);
            let mut begun = Vec::new();
            for _ in 0..count {
                match luck.below(8) {
                    0 => begun.push((large.at(other).get_apply(ADD, 13)?, None)),
                    1 => drop(words.at(other).put_add(1)?),
                    2 => begun.push((words.at(other).get()?, Some(u64::MAX))),
                    _ => {
                        let by = 20 + luck.below(9);
                        sum += by;
                        begun.push((large.at(other).get_apply(ADD, by)?, Some(sum)));
                    }
                }
            }
            let failing = begun.iter().filter(|(_, expected)| expected.is_none()).count();
            panics += failing as u64;
            assert_eq!(
                world.sync().await.is_err(),
                failing > 0,
                "the sync tells if any has failed"
            );
            for (get, expected) in begun {
                match (get.value(), expected) {
                    (Ok(_), Some(u64::MAX)) => {}
                    (Ok(found), Some(expected)) => assert_eq!(found, expected),
                    (Err(why), None) => {
                        assert!(matches!(why.kind(), ErrorKind::Refused { .. }), "{why}");
                    }
                    (found, expected) => panic!("{found:?} where {expected:?} was expected"),
                }
            }
        }
        let refused = world.all_gather(panics).await?[other];
        assert_eq!(world.refused(), refused);
        world.barrier().await
    });
}

#[test]
fn an_awaited_function_that_panics_is_told_by_the_call_and_by_the_next_sync() {
    by_messages(async |world| {
        world.define(ADD).await?;
        let large = world.spread::<Large>(2).await?;
        let other = 1 - world.rank();
        is_refused(&large.at(other).apply(ADD, 13).await.unwrap_err(), other);
        is_refused(&world.sync().await.unwrap_err(), other);
        assert_eq!(large.at(other).apply(ADD, 4).await?, 4);
        world.sync().await?;
        world.barrier().await
    });
}

const ONE: Apply<u64, u64, u64> = Apply::new("one name", |value, by| {
    *value += by;
    *value
});
const OTHER: Apply<u64, u64, u64> = Apply::new("one name", |_, _| 1000);
const LARGE: Apply<Large, u64, u64> = Apply::new("a large one", |value, by| {
    value[0] += by;
    value[0]
});
const OTHER_LARGE: Apply<Large, u64, u64> = Apply::new("a large one", |_, _| 1000);

#[test]
fn the_function_that_was_defined_runs_wherever_the_value_is_and_whatever_the_carrier() {
    by_each(async |world| {
        world.define(ONE).await?;
        world.define(LARGE).await?;
        let size = world.size();
        let words = world.spread::<u64>(size * size).await?;
        let large = world.spread::<Large>(size * size).await?;
        for rank in 0..size {
            // An element of each process that is for this one alone.
            let at = rank + size * world.rank();
            assert_eq!(words.at(at).apply(OTHER, 2).await?, 2);
            assert_eq!(words.at(at).apply(ONE, 3).await?, 5);
            assert_eq!(words.at(at).get_apply(OTHER, 4)?.done().await?, 9);
            assert_eq!(words.at(at).read().await?, 9);
            assert_eq!(large.at(at).apply(OTHER_LARGE, 2).await?, 2);
            assert_eq!(large.at(at).apply(LARGE, 3).await?, 5);
            assert_eq!(large.at(at).read().await?[0], 5);
        }
        world.barrier().await
    });
}
