//! Functions that are not defined, or defined twice, or in different ways, or that panic.

use doorbell_splitc::{Apply, ErrorKind, HeapError};

use crate::errors::{by_each, heap_error, invalid};

pub const BYTE: Apply<u8, u8, u8> = Apply::new("byte", |value, by| {
    *value = value.wrapping_add(by);
    *value
});
const OTHER_TYPES: Apply<u8, u64, u8> = Apply::new("byte", |value, _| *value);
const OTHER_NAME: Apply<u8, u8, u8> = Apply::new("another", |value, _| *value);
const LONG: Apply<u64, [u8; 4096], u8> = Apply::new("long", |_, _| 0);
const PANICS: Apply<u64, u64, u64> = Apply::new("panics", |value, by| {
    assert!(by != 13, "as it should");
    *value += by;
    *value
});
const PANICS_WHEN_LARGE: Apply<[u64; 5], u64, u64> =
    Apply::new("panics when large", |value, by| {
        assert!(by != 13, "as it should");
        value[4] += by;
        value[4]
    });

#[test]
fn a_function_is_defined_before_it_is_applied_and_once() {
    by_each(async |world| {
        let array = world.spread::<u8>(world.size()).await?;
        for rank in 0..world.size() {
            let why = array.at(rank).apply(BYTE, 1).await.unwrap_err();
            assert!(matches!(why.kind(), ErrorKind::NotDefined { name: "byte" }), "{why}");
        }
        world.define(BYTE).await?;
        assert!(invalid(world.define(BYTE).await).contains("defined already"));
        assert!(invalid(world.define(OTHER_TYPES).await).contains("defined already"));
        assert!(invalid(world.define(LONG).await).contains("4096"));
        let why = array.at(0).apply(OTHER_TYPES, 1).await.unwrap_err();
        assert!(matches!(why.kind(), ErrorKind::NotDefined { name: "byte" }), "{why}");
        array.at(world.rank()).apply(BYTE, 3).await?;
        Ok(())
    });
}

#[test]
fn functions_that_differ_between_processes_are_defined_nowhere() {
    by_each(async |world| {
        let array = world.spread::<u8>(world.size()).await?;
        let odd = world.rank() == 1;
        for turn in 0..2 {
            let defined = match (odd, turn) {
                (false, _) => world.define(BYTE).await,
                (true, 0) => world.define(OTHER_TYPES).await,
                (true, _) => world.define(OTHER_NAME).await,
            };
            let why = heap_error(defined);
            let what = ["the argument", "the name"][turn];
            assert!(matches!(why, HeapError::Differs { what: said, .. } if said == what), "{why}");
            assert!(array.at(0).apply(BYTE, 1).await.is_err());
        }
        world.define(BYTE).await?;
        array.at(0).apply(BYTE, 1).await?;
        world.barrier().await?;
        assert_eq!(array.at(0).read().await?, world.size() as u8);
        Ok(())
    });
}

#[test]
fn a_function_that_panics_at_another_process_is_an_error_of_whoever_applied_it() {
    by_each(async |world| {
        world.define(PANICS).await?;
        world.define(PANICS_WHEN_LARGE).await?;
        let words = world.spread::<u64>(world.size()).await?;
        let large = world.spread::<[u64; 5]>(world.size()).await?;
        let next = (world.rank() + 1) % world.size();
        // A mapped word is changed by the process that asks, whose own panic it is.
        if world.carrier(next)? != doorbell_splitc::Carrier::Mapped {
            assert!(words.at(next).apply(PANICS, 13).await.is_err());
            assert!(world.sync().await.is_err());
        }
        assert!(large.at(next).apply(PANICS_WHEN_LARGE, 13).await.is_err());
        assert!(world.sync().await.is_err(), "the failure is told by the next sync, too");
        let why = large.at(next).apply(PANICS_WHEN_LARGE, 13).await.unwrap_err();
        assert!(
            matches!(why.kind(), ErrorKind::Refused { rank, count: 1 } if *rank == next),
            "{why}"
        );
        assert!(world.sync().await.is_err());
        assert_eq!(words.at(next).apply(PANICS, 2).await?, 2);
        assert_eq!(large.at(next).apply(PANICS_WHEN_LARGE, 2).await?, 2);
        world.sync().await
    });
}
