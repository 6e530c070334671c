//! Operations that await something while another future of the same process makes the array
//! private.

use doorbell_splitc::{Carrier, Config, Error};

use crate::common::{by, run};
use crate::private::{in_place, is_private};

/// How many words a process's part has: many messages.
const WORDS: usize = 8000;

#[test]
fn a_span_that_is_stored_while_the_array_becomes_private_changes_no_private_slice() {
    // The range was looked at once, and then written after other futures had run: the stores came
    // when the target had its slice already.
    for round in 0..3 {
        let config = Config { credits: 1, heap: 1 << 20, ..by(Carrier::Messages) };
        run(2, "shm", config, async move |world| {
            let array = world.blocked::<u64>(2 * WORDS).await?;
            let over = world.spread::<u64>(2).await?;
            if world.rank() == 0 {
                let span = world.span(array.pointer(WORDS)?, WORDS);
                let ones = vec![1; WORDS];
                let (stored, part) = tokio::join!(span.store_async(&ones), in_place(&array));
                let part = part?;
                assert!(stored.is_ok() || is_private(&stored), "round {round}: {stored:?}");
                over.at(1).write(1 + u64::from(stored.is_ok())).await?;
                drop(part);
            } else {
                let part = in_place(&array).await?;
                let before = part.to_vec();
                let stored = over.at(1).wait_until(|stored| stored > 0).await?;
                world.flush().await?;
                assert_eq!(*part, before, "round {round}: the slice has changed");
                let whole = stored < 2 || before.iter().all(|&word| word == 1);
                assert!(whole, "round {round}: a store that was done is not in the slice");
                drop(part);
            }
            array.share().await?;
            Ok(world.barrier().await?)
        });
    }
}

#[test]
fn a_wait_for_an_element_ends_with_an_error_when_the_array_becomes_private() {
    // The wait read the element while the process had it as an exclusive slice.
    run(2, "shm", Config { heap: 1 << 20, ..by(Carrier::Mapped) }, async |world| {
        let array = world.spread::<u64>(2).await?;
        let own = world.rank();
        let (waited, held) = tokio::join!(array.at(own).wait_until(|value| value == 7), async {
            let mut part = in_place(&array).await?;
            part[0] = 7;
            for _ in 0..100 {
                world.flush().await?;
            }
            drop(part);
            array.share().await
        });
        assert!(is_private(&waited), "{waited:?}");
        held?;
        assert_eq!(array.at(own).wait_until(|value| value == 7).await?, 7);
        Ok(world.barrier().await?)
    });
}

#[test]
fn a_wait_for_an_element_ends_with_an_error_when_the_array_is_freed() {
    // The place may belong to another array by the time it is looked at again.
    run(2, "shm", Config { heap: 1 << 20, ..by(Carrier::Mapped) }, async |world| {
        let array = world.spread::<u64>(2).await?;
        let own = world.at(array.pointer(world.rank())?);
        let (waited, freed) = tokio::join!(own.wait_until(|value| value == 7), async {
            array.free().await?;
            let other = world.spread::<u64>(2).await?;
            other.at(world.rank()).write(7).await?;
            for _ in 0..100 {
                world.flush().await?;
            }
            Ok::<_, Error>(())
        });
        assert!(waited.is_err(), "{waited:?}");
        freed?;
        Ok(world.barrier().await?)
    });
}
