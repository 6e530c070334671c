//! Futures and handles that are given up before they are done.

use std::time::Duration;

use doorbell::splitc::{Carrier, Config};
use tokio::time::timeout;

use crate::common::{by, run};

#[test]
fn what_a_given_up_flush_did_not_send_is_sent_by_the_next_one() {
    for stores in [false, true] {
        run(2, "shm", Config { credits: 1, ..by(Carrier::Messages) }, async move |world| {
            let array = world.blocked::<u64>(2048).await?;
            let (first, flag) = (1024 * (1 - world.rank()), 1024 * world.rank() + 1023);
            world.barrier().await?;
            if world.rank() == 0 {
                // One message is under way, and the other process takes none: the next must wait.
                for at in 0..2 {
                    match stores {
                        true => array.at(first + at).store(7)?,
                        false => drop(array.at(first + at).put(7)?),
                    }
                    let _ = timeout(Duration::from_millis(1), world.flush()).await;
                }
                let given_up = match stores {
                    true => timeout(Duration::from_millis(1), world.flush()).await.is_err(),
                    false => timeout(Duration::from_millis(1), world.sync()).await.is_err(),
                };
                assert!(given_up || !stores);
                // From here on the other process takes messages.
                world.set_carrier(1, Carrier::Mapped)?;
                array.at(first + 1023).write(1).await?;
                world.set_carrier(1, Carrier::Messages)?;
                world.sync().await?;
            } else {
                // Busy, and deaf: its own memory it reads without the world's help.
                while array.at(flag).get()?.value()? == 0 {
                    std::thread::yield_now();
                }
            }
            world.all_store_sync().await?;
            if world.rank() == 1 {
                assert_eq!(world.span(array.pointer(1024)?, 2).read().await?, [7, 7]);
            }
            Ok(world.barrier().await?)
        });
    }
}

#[test]
fn values_of_handles_that_are_dropped_or_given_up_go_nowhere() {
    for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        for device in ["shm", "udp"] {
            run(2, device, by(carrier), async |world| {
                let array = world.blocked::<u64>(2000).await?;
                let other = 1000 * (1 - world.rank());
                let whole = world.span(array.pointer(other)?, 1000);
                array.at(1000 - other).write(5).await?;
                world.barrier().await?;
                for _ in 0..200 {
                    drop((array.at(other).get()?, whole.get()?, array.gather(&[other; 9])?));
                    drop(array.at(other + 1).get_add(1)?);
                    let waits = array.at(other).read();
                    let _ = timeout(Duration::ZERO, waits).await;
                    // Slots of handles serve for others once their values have come.
                    assert_eq!(array.at(other).get()?.done().await?, 5);
                }
                world.sync().await?;
                assert_eq!(array.at(other + 1).read().await?, 200);
                Ok(world.barrier().await?)
            });
        }
    }
}

#[test]
fn what_a_begun_collective_waits_behind_is_sent() {
    for carrier in [Carrier::Mapped, Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        run(2, "shm", by(carrier), async |world| {
            let array = world.spread::<u64>(2).await?;
            if world.rank() == 0 {
                let barrier = world.arrive()?;
                // Process 1 comes to the barrier when it has this.
                array.at(1).store(3)?;
                barrier.done().await?;
            } else {
                world.store_sync(8).await?;
                assert_eq!(array.at(1).read().await?, 3);
                world.arrive()?.done().await?;
            }
            Ok(world.barrier().await?)
        });
    }
}
