//! Futures and handles that are given up before they are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_splitc::{Carrier, Config};
use tokio::time::timeout;

use crate::common::{by, run};
use crate::ends::GoesOn;

#[test]
fn what_a_given_up_flush_did_not_send_is_sent_by_the_next_one() {
    for stores in [false, true] {
        let deaf = Arc::new(AtomicBool::new(false));
        let goes_on = Arc::new(AtomicBool::new(false));
        run(2, "shm", Config { credits: 1, ..by(Carrier::Messages) }, async move |world| {
            let array = world.blocked::<u64>(20).await?;
            world.barrier().await?;
            if world.rank() == 0 {
                let goes_on = GoesOn(goes_on.clone());
                while !deaf.load(Ordering::Acquire) {
                    world.flush().await?;
                    tokio::task::yield_now().await;
                }
                // One message is under way, and the other process takes none: one more must wait.
                let mut given_up = false;
                for at in 10..14 {
                    match stores {
                        true => array.at(at).store(7)?,
                        false => drop(array.at(at).put(7)?),
                    }
                    given_up |= timeout(Duration::from_millis(1), world.flush()).await.is_err();
                }
                assert!(given_up, "there were credits enough");
                drop(goes_on);
                world.sync().await?;
            } else {
                // It computes, and serves nobody.
                deaf.store(true, Ordering::Release);
                while !goes_on.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            world.all_store_sync().await?;
            if world.rank() == 1 {
                assert_eq!(world.span(array.pointer(10)?, 4).read().await?, [7; 4]);
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
