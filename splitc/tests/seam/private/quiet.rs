//! Stores that another future of the process is sending when the process waits for all of them.

use doorbell_kit::effort;
use doorbell_splitc::{Carrier, Config};

use crate::common::{by, run};
use crate::private::in_place;

#[test]
fn all_store_sync_waits_for_stores_that_another_future_of_the_process_is_sending() {
    // The other future had taken the peer off the list of those for which something waits, and
    // waited for a credit. So the list was empty, nothing was under way, and the call returned.
    let config = Config { credits: 1, heap: 1 << 20, ..by(Carrier::Messages) };
    let rounds = effort(300, 5000);
    run(2, "shm", config, async move |world| {
        let array = world.spread::<u64>(2).await?;
        let (own, other) = (world.rank(), 1 - world.rank());
        for round in 1..=rounds {
            // The one credit goes with a read, and the store stays behind.
            let read = array.at(other).get()?;
            world.flush_now()?;
            array.at(other).store(round)?;
            let (flushed, synced) = tokio::join!(world.flush(), world.all_store_sync());
            flushed?;
            synced?;
            drop(read);
            assert_eq!(array.at(own).read().await?, round, "a store has not come");
            world.barrier().await?;
        }
        Ok(())
    });
}

#[test]
fn a_private_slice_has_what_another_future_of_the_process_was_sending() {
    let config = Config { credits: 1, heap: 1 << 20, ..by(Carrier::Messages) };
    let rounds = effort(300, 5000);
    run(2, "shm", config, async move |world| {
        let array = world.spread::<u64>(2).await?;
        let other = 1 - world.rank();
        for round in 1..=rounds {
            let read = array.at(other).get()?;
            world.flush_now()?;
            array.at(other).store(round)?;
            let (flushed, part) = tokio::join!(world.flush(), in_place(&array));
            flushed?;
            let part = part?;
            drop(read);
            assert_eq!(*part, [round], "a store has not come");
            world.flush().await?;
            assert_eq!(*part, [round], "a store came later");
            drop(part);
            array.share().await?;
        }
        Ok(())
    });
}
