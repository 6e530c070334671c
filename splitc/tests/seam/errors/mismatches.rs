//! Collectives of different kinds that meet: errors name both of them, as programs call them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_splitc::{BoxError, Config, Error, World, operators};

use crate::common::{by, carriers, outcome};

/// A call of one process that the other processes do not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Calls {
    AllStoreSync,
    Barrier,
    SplitBarrier,
    AllReduce,
    /// The program of the process ends.
    Ends,
}

impl Calls {
    /// The name of the collective in errors.
    fn name(self) -> &'static str {
        match self {
            Self::AllStoreSync => "`all_store_sync`",
            Self::Barrier | Self::SplitBarrier => "a barrier",
            Self::AllReduce => "an all-reduce",
            Self::Ends => "`leave`, at the end of its program",
        }
    }

    async fn call(self, world: &World) -> Result<(), Error> {
        match self {
            Self::AllStoreSync => world.all_store_sync().await,
            Self::Barrier => world.barrier().await,
            Self::SplitBarrier => world.arrive()?.done().await,
            Self::AllReduce => world.all_reduce(1_u64, operators::sum).await.map(drop),
            Self::Ends => world.leave().await,
        }
    }
}

/// Has one process call something else than all others. Each of them gets an error, and the one
/// who noticed names both collectives.
#[track_caller]
fn meets(size: usize, device: &str, config: Config, odd: usize, calls: [Calls; 2]) {
    let what = format!("{size} processes, {device}, {:?}, {odd}, {calls:?}", config.carrier);
    let all = Arc::new(Mutex::new(Vec::new()));
    let (texts, behind) = (all.clone(), AtomicUsize::new(0));
    let ended = outcome(size, device, config, async move |world| {
        let array = world.blocked::<u64>(100 * world.size()).await?;
        let next = (world.rank() + 1) % world.size();
        for at in 0..100 {
            array.at(100 * next + at).store(1)?;
        }
        // Nobody is to learn of the mismatch before its own call.
        behind.fetch_add(1, Ordering::AcqRel);
        while behind.load(Ordering::Acquire) < size {
            world.flush().await?;
            tokio::task::yield_now().await;
        }
        let call = calls[usize::from(world.rank() == odd)];
        let Err(why) = call.call(&world).await else {
            texts.lock().expect("no panic").push(format!("process {}: no error", world.rank()));
            return Err(BoxError::from("no error"));
        };
        texts.lock().expect("no panic").push(why.to_string());
        Err::<(), _>(why.into())
    });
    assert!(ended.is_err(), "{what}");
    let texts = all.lock().expect("no panic");
    assert_eq!(texts.len(), size, "{what}: each process gets an error: {texts:?}, {ended:?}");
    let names_both = |text: &String| {
        calls.iter().all(|call| text.contains(call.name())) && text.contains("process ")
    };
    assert!(texts.iter().any(names_both), "{what}: {texts:?}");
    // Split-C has processes, and its programs call neither fences nor members.
    let foreign = |text: &String| text.contains("member") || text.contains("fence");
    assert!(!texts.iter().any(foreign), "{what}: {texts:?}");
}

#[test]
fn all_store_sync_at_one_process_does_not_meet_the_barrier_of_others() {
    use Calls::{AllStoreSync, Barrier, SplitBarrier};
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            for calls in [[AllStoreSync, Barrier], [Barrier, AllStoreSync]] {
                meets(2, device, by(carrier), 1, calls);
            }
        }
        for odd in 0..3 {
            meets(3, device, crate::common::config(), odd, [AllStoreSync, SplitBarrier]);
            meets(3, device, crate::common::config(), odd, [Barrier, AllStoreSync]);
        }
    }
}

#[test]
fn the_end_of_a_program_does_not_meet_what_others_call() {
    for device in ["shm", "udp"] {
        for calls in [Calls::Barrier, Calls::SplitBarrier, Calls::AllStoreSync, Calls::AllReduce] {
            for odd in 0..2 {
                meets(2, device, crate::common::config(), odd, [calls, Calls::Ends]);
            }
            meets(3, device, crate::common::config(), 1, [calls, Calls::Ends]);
            meets(3, device, crate::common::config(), 2, [Calls::Ends, calls]);
        }
    }
}
