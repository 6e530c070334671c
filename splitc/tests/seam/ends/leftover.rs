//! What is under way to living processes when another one dies, and what is told of what failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doorbell_splitc::{BoxError, Carrier, RunError, Spread, World};

use crate::common::{by, carriers, outcome};
use crate::ends::{Count, GoesOn};

/// Runs a program of three processes, the last of which dies by itself.
#[track_caller]
fn last_one_dies<F>(device: &str, carrier: Carrier, program: F)
where
    F: AsyncFn(World, Spread<u64>) -> Result<(), BoxError> + Send + Sync + 'static,
{
    let behind = Count::default();
    let ended = outcome(3, device, by(carrier), async move |world| {
        let array = world.blocked::<u64>(300).await?;
        array.at(100 * world.rank()).write(5).await?;
        world.barrier().await?;
        if world.rank() == 2 {
            // The death is not to fail the barrier of the others.
            behind.reaches(2, &world).await;
            return Err("as it should".into());
        }
        behind.one_more();
        program(world, array).await
    });
    let is_its = matches!(ended, Err(RunError::Failed { rank: 2, .. }));
    assert!(is_its, "{device}, {carrier}: {ended:?}");
}

#[test]
fn what_waits_for_living_processes_is_sent_though_another_has_died() {
    for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        let is_done = Arc::new(AtomicBool::new(false));
        last_one_dies("shm", carrier, async move |world, array| {
            match world.rank() {
                1 => {
                    // It serves process 0 until that has done.
                    while !is_done.load(Ordering::Acquire) {
                        world.poll();
                        tokio::task::yield_now().await;
                    }
                    Ok(())
                }
                _ => {
                    let _is_done = GoesOn(is_done.clone());
                    // Puts of both processes wait to be sent when one of the two is noticed to have
                    // died.
                    let got = loop {
                        let got = array.at(100).get()?;
                        array.at(101).put(6)?;
                        let sent = array.at(200).put(7).map(drop);
                        match sent.and(world.sync().await) {
                            Ok(()) => tokio::task::yield_now().await,
                            Err(why) => {
                                assert_eq!(why.gone(), Some(2), "{why}");
                                break got;
                            }
                        }
                    };
                    // A failure is told once, and by then all else is done.
                    world.sync().await?;
                    assert_eq!(got.value()?, 5);
                    assert_eq!(array.at(101).read().await?, 6);
                    Ok(())
                }
            }
        });
    }
}

#[test]
fn handles_of_what_failed_give_the_error() {
    for device in ["shm", "udp"] {
        for &carrier in &carriers(device)[usize::from(device == "shm")..] {
            last_one_dies(device, carrier, async |world, array| {
                let theirs = world.span(array.pointer(200)?, 100);
                loop {
                    let begun = || {
                        Ok::<_, doorbell_splitc::Error>((
                            array.at(200).get()?,
                            theirs.get()?,
                            array.at(201).get_add(1)?,
                            theirs.put(&[3; 100])?,
                        ))
                    };
                    let Ok((one, many, added, put)) = begun() else { break };
                    if world.sync().await.is_ok() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    assert!(one.is_done() && many.is_done() && added.is_done() && put.is_done());
                    // Each was done before the death, or tells of it.
                    for outcome in [one.value().map(drop), many.values().map(drop)] {
                        assert!(outcome.is_ok() || outcome.unwrap_err().gone() == Some(2));
                    }
                    for outcome in [added.done().await.map(drop), put.done().await] {
                        assert!(outcome.is_ok() || outcome.unwrap_err().gone() == Some(2));
                    }
                    break;
                }
                Ok(())
            });
        }
    }
}
