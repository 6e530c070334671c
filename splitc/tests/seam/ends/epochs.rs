//! A process that ends, or gives up, while a private epoch opens: whoever has its slice has it for
//! itself.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use doorbell_kit::effort;
use doorbell_splitc::{AccessError, BoxError, Config, Error, ErrorKind, Spread, World};

use crate::common::{config, outcome};
use crate::ends::Count;

/// How process 0 fails the others.
#[derive(Clone, Copy, Debug)]
enum Fails {
    /// The process ends in the middle of opening the epoch.
    Ends,
    /// The process drops the future in the middle of opening the epoch, and lives on.
    GivesUp,
}

/// Polls a future so many times at most, and drops it. Returns whether it was done.
async fn give_up_after(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready()));
        if polled.await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Tries to write into the parts of all processes by pointers, which must be refused.
async fn writes(world: &World, array: &Spread<u64>) {
    for rank in 0..world.size() {
        let refused = |written: Result<(), Error>| {
            let refused = matches!(
                written.as_ref().map_err(Error::kind),
                Err(ErrorKind::Access(AccessError::Private { .. }))
            );
            assert!(refused, "process {} writes into {rank}: {written:?}", world.rank());
        };
        refused(array.at(rank).write(9).await);
        refused(array.at(rank).store(9));
        refused(array.at(rank).put(9).map(drop));
    }
}

/// Returns how many of the surviving processes got their slices.
fn plays(size: usize, polls: usize, fails: Fails) -> usize {
    println!("plays({size}, {polls}, {fails:?}), to be called again like that");
    let (behind, tried, slices) = (Count::default(), Count::default(), Count::default());
    let got = slices.clone();
    let what = format!("{size} processes, {polls} polls, {fails:?}");
    let ended = outcome(size, "shm", Config { heap: 1 << 20, ..config() }, async move |world| {
        let array = world.spread::<u64>(world.size()).await?;
        let survivors = world.size() - 1;
        if world.rank() == 0 {
            // Nobody is to learn of the failure in the midst of the allocation.
            behind.reaches(survivors, &world).await;
            give_up_after(polls, array.private()).await;
            if matches!(fails, Fails::GivesUp) {
                tried.reaches(survivors, &world).await;
            }
            return Err(BoxError::from("as it should"));
        }
        behind.one_more();
        match array.private().await {
            Ok(part) => {
                slices.one_more();
                tried.one_more();
                tried.reaches(survivors, &world).await;
                assert_eq!(*part, [0], "nobody else has written into this slice");
            }
            Err(_) => {
                writes(&world, &array).await;
                // Nor does a later attempt give the memory to pointers.
                assert!(array.share().await.is_err() && array.private().await.is_err());
                writes(&world, &array).await;
                tried.one_more();
                tried.reaches(survivors, &world).await;
            }
        }
        Ok(())
    });
    let why = ended.unwrap_err().to_string();
    assert_eq!(why, "process 0: as it should", "{what}");
    got.count()
}

#[test]
fn whoever_gets_no_slice_as_a_process_ends_or_gives_up_has_no_pointers_either() {
    let mut both = 0;
    for round in 0..effort(2, 40) {
        for (size, fails) in [(3, Fails::Ends), (5, Fails::Ends), (3, Fails::GivesUp)] {
            for polls in 1..10 {
                let slices = plays(size, polls, fails);
                both += usize::from(slices > 0 && slices < size - 1);
            }
        }
        println!("after round {round}: in {both} runs some processes got a slice, and some not");
    }
}
