//! A process that asks its own memory again and again, by operations that are done at once, serves
//! the others meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_splitc::{Apply, Error, Spread, World};

use crate::common::{by, carriers, run};

const LOOK: Apply<u64, u64, u64> = Apply::new("look", |value, _| *value);

/// How a process looks at a word of its own memory.
#[derive(Clone, Copy, Debug)]
enum Looks {
    Reads,
    Gets,
    Adds,
    GetsAdds,
    Swaps,
    Applies,
    ReadsASpan,
    ReadsInto,
    Gathers,
    Copies,
    Syncs,
    StoresSoon,
    AddsSoon,
    StoresASpanSoon,
    Writes,
    WritesASpan,
    Puts,
    Stores,
    Scatters,
    Signals,
}

const ALL: [Looks; 20] = [
    Looks::Reads,
    Looks::Gets,
    Looks::Adds,
    Looks::GetsAdds,
    Looks::Swaps,
    Looks::Applies,
    Looks::ReadsASpan,
    Looks::ReadsInto,
    Looks::Gathers,
    Looks::Copies,
    Looks::Syncs,
    Looks::StoresSoon,
    Looks::AddsSoon,
    Looks::StoresASpanSoon,
    Looks::Writes,
    Looks::WritesASpan,
    Looks::Puts,
    Looks::Stores,
    Looks::Scatters,
    Looks::Signals,
];

/// Does one operation on words of this process's own, which is done at once.
async fn look(world: &World, array: &Spread<u64>, index: usize, looks: Looks) -> Result<(), Error> {
    let (word, beside) = (array.at(index), array.at(index + 1));
    let ptr = array.pointer(index)?;
    match looks {
        Looks::Reads => word.read().await.map(drop),
        Looks::Gets => word.get()?.value().map(drop),
        Looks::Adds => word.fetch_add(0).await.map(drop),
        Looks::GetsAdds => word.get_add(0)?.value().map(drop),
        Looks::Swaps => word.compare_swap(7, 7).await.map(drop),
        Looks::Applies => word.apply(LOOK, 0).await.map(drop),
        Looks::ReadsASpan => world.span(ptr, 2).read().await.map(drop),
        Looks::ReadsInto => world.span(ptr, 2).read_into(&mut [0; 2]).await,
        Looks::Gathers => array.gather(&[index, index + 1])?.done().await.map(drop),
        Looks::Copies => world.copy(ptr, ptr.local_add(1), 1)?.done().await,
        Looks::Syncs => world.sync().await,
        Looks::StoresSoon => beside.store_async(1).await,
        Looks::AddsSoon => beside.store_add_async(1).await,
        Looks::StoresASpanSoon => world.span(ptr.local_add(1), 2).store_async(&[1; 2]).await,
        Looks::Writes => beside.write(1).await,
        Looks::WritesASpan => world.span(ptr.local_add(1), 2).write(&[1; 2]).await,
        Looks::Puts => beside.put(1)?.done().await,
        Looks::Stores => beside.store(1),
        Looks::Scatters => array.scatter(&[index + 1, index + 2], &[1; 2])?.done().await,
        Looks::Signals => {
            let data = world.span(ptr.local_add(1), 1);
            data.put_signal(&[1], array.at(index + 2), 1)?.done().await
        }
    }
}

/// Writes a word of the other process in one of several ways, and waits until that is done.
async fn write(array: &Spread<u64>, way: usize, value: u64) -> Result<(), Error> {
    let word = || array.at(0);
    match way % 5 {
        0 => word().write(value).await,
        1 => word().put(value)?.done().await,
        2 => word().fetch_max(value).await.map(drop),
        3 => word().swap(value).await.map(drop),
        _ => word().compare_swap(value - 1, value).await.map(drop),
    }
}

/// Has process 0 spin by each operation until process 1 has written a word of process 0, which it
/// says by other means than those that are tested.
fn spins(device: &'static str) {
    for &carrier in carriers(device) {
        let written = Arc::new(AtomicUsize::new(0));
        run(2, device, by(carrier), async move |world| {
            world.define(LOOK).await?;
            let array = world.blocked::<u64>(8).await?;
            for (way, looks) in ALL.into_iter().enumerate() {
                let number = 1 + way;
                world.barrier().await?;
                if world.rank() == 0 {
                    while written.load(Ordering::Acquire) < number {
                        look(&world, &array, 0, looks).await?;
                    }
                    let found = array.at(0).read().await?;
                    assert_eq!(found, number as u64, "{device}, {carrier}, {looks:?}");
                } else {
                    write(&array, way, number as u64).await?;
                    written.store(number, Ordering::Release);
                }
            }
            // What was stored beside the word is counted, too.
            Ok(world.all_store_sync().await?)
        });
    }
}

#[test]
fn in_shared_memory_a_process_that_spins_on_its_own_word_by_any_operation_is_reached() {
    spins("shm");
}

#[test]
fn by_udp_a_process_that_spins_on_its_own_word_by_any_operation_is_reached() {
    spins("udp");
}

/// A process that never waits is reached by operations that only its program serves: functions on
/// values that only their owner changes.
#[test]
fn a_process_that_spins_on_its_own_word_applies_the_functions_of_others() {
    const FILL: Apply<[u64; 4], u64, u64> = Apply::new("fill", |value, by| {
        *value = [by; 4];
        by
    });
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            run(2, device, by(carrier), async move |world| {
                world.define(FILL).await?;
                let array = world.spread::<[u64; 4]>(2).await?;
                world.barrier().await?;
                match world.rank() {
                    0 => while array.at(0).read().await? != [3; 4] {},
                    _ => drop(array.at(0).apply(FILL, 3).await?),
                }
                Ok(world.barrier().await?)
            });
        }
    }
}
