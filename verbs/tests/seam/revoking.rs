//! Memory that is revoked while peers write to it as fast as they can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use doorbell_kit::lab;
use doorbell_verbs::{Cause, Config, FailedWhy, Failure, Region, Rights};

use crate::common::{
    End, Over, Runs, brief, buf, bytes, connected, dedicated, lent, nics, run, sleepy,
};
use crate::errors::{says, with};
use crate::operations::plug;

/// Returns a checksum, which tells whether a byte of the region has changed.
pub fn sum(region: &Region) -> u64 {
    let words = region.words().iter().map(|word| word.load(Ordering::Relaxed));
    words.fold(0, |sum: u64, word| sum.rotate_left(5) ^ word)
}

/// Writes at full speed, several writes at a time, until a write is refused.
async fn writes(end: Arc<End>, memory: doorbell_verbs::RemoteMemory, which: usize) -> FailedWhy {
    for number in 0.. {
        let part = memory.at(1 << 14, 1 << 15).expect("within");
        let data = buf(which * 1000 + number, 1 << 15);
        if let Err(failed) = end.pair.write(data, part).await {
            return failed.why();
        }
    }
    unreachable!("it is refused before the numbers end")
}

#[test]
fn no_byte_of_revoked_memory_changes() {
    for (over, config) in [
        (Over::Shm, brief()),
        (Over::Shm, dedicated()),
        (Over::Udp, brief()),
        (Over::Udp, sleepy()),
    ] {
        revokes(over, config);
    }
}

#[test]
fn no_byte_of_revoked_memory_changes_over_raw_ethernet() {
    lab::test(|lab| {
        plug(lab);
        for over in [Over::Packet, Over::PacketV2] {
            revokes(over, brief());
            revokes(over, dedicated());
        }
    });
}

fn revokes(over: Over, config: Config) {
    const ROUNDS: usize = 20;
    run(Runs::MultiThread, move || async move {
        let (near, far) = nics(over, &config);
        for _ in 0..ROUNDS {
            let (one, other) = connected(&near, &far).await;
            let (one, memory) = (Arc::new(one), lent(&other.domain));
            let remote = memory.remote();
            let writers: Vec<_> =
                (0..4).map(|which| tokio::spawn(writes(one.clone(), remote, which))).collect();
            // They are in the middle of it.
            let before = sum(&memory);
            far.until(|| (sum(&memory) != before).then_some(())).await;
            let region = memory.revoke().await.expect("it was not before");
            let (after, ends) = (sum(&region), AtomicBool::new(false));
            std::thread::scope(|scope| {
                // On a thread, for the writers are not to wait for this.
                let looks = scope.spawn(|| {
                    while !ends.load(Ordering::Relaxed) {
                        assert_eq!(sum(&region), after, "a byte has changed");
                    }
                });
                let mut refused = 0;
                tokio::task::block_in_place(|| {
                    for writer in writers {
                        let why = crate::common::wait_for(writer).expect("it does not panic");
                        let access = Failure::Broke(Cause::PeerAccess);
                        refused += usize::from(why == FailedWhy::Carried(access));
                    }
                });
                ends.store(true, Ordering::Relaxed);
                looks.join().expect("nothing changes");
                assert_eq!(refused, 1, "one is refused, and what is behind it is flushed");
            });
            drop((one, other));
        }
    });
}

/// Checks that the region can't be lent as slices now.
#[track_caller]
fn not_private(region: Region) -> Region {
    let refused = region.try_private().map(drop).expect_err("somebody else may write it");
    says(&refused, &["is still shared"]);
    refused.into_region()
}

/// A peer that has the key may write at any time, whether this program has a handle or not.
#[test]
fn memory_is_lent_as_slices_only_when_no_key_of_it_is_alive() {
    with(|near, far| async move {
        for is_revoked in [true, false] {
            let region = Region::new(64);
            let memory = far.domain.register(region.clone(), Rights::REMOTE).expect("room");
            let region = not_private(region);
            near.pair.write(buf(1, 64), memory.remote()).await.expect("it may");
            let region = not_private(region);
            let remote = memory.renew().expect("it was not revoked");
            let mut region = not_private(region);
            near.pair.write(buf(2, 64), remote).await.expect("it may");
            match is_revoked {
                true => drop(memory.revoke().await.expect("it was not before")),
                false => drop(memory),
            }
            let mut private = loop {
                match region.try_private() {
                    Ok(private) => break private,
                    // What was dropped is taken back by whoever next has the NIC in hand.
                    Err(refused) if !is_revoked => region = refused.into_region(),
                    Err(refused) => panic!("it was revoked: {refused}"),
                }
                tokio::task::yield_now().await;
            };
            assert!(private.as_bytes() == bytes(2, 64), "what was written is there");
        }
        drop((near, far));
    });
}
