//! What is wrong gives an error that says so, whichever carrier there is, and the world goes on.

mod epochs;
mod functions;
mod heap;
mod hostile;
mod imposters;
mod jobs;
mod mismatches;
mod panicking;
mod pointers;
mod ranges;
mod strangers;
mod together;

use doorbell_splitc::{AccessError, Config, Error, ErrorKind, HeapError, World};

use crate::common::{by, carriers, run};

/// Returns the access error that an operation has ended with.
#[track_caller]
fn access<T>(result: Result<T, Error>) -> AccessError {
    match result.err().as_ref().map(Error::kind) {
        Some(ErrorKind::Access(why)) => *why,
        other => panic!("not an error about an access: {other:?}"),
    }
}

/// Returns the heap error that an allocation has ended with.
#[track_caller]
fn heap_error<T>(result: Result<T, Error>) -> HeapError {
    match result.err().as_ref().map(Error::kind) {
        Some(ErrorKind::Heap(why)) => why.clone(),
        other => panic!("not an error about the heap: {other:?}"),
    }
}

/// Returns the message for an argument of a wrong length or form.
#[track_caller]
fn invalid<T>(result: Result<T, Error>) -> String {
    match result.err().as_ref().map(Error::kind) {
        Some(ErrorKind::Invalid(why)) => why.clone(),
        other => panic!("not an error about an argument: {other:?}"),
    }
}

/// Runs a program as two and as three processes by every carrier, over shared memory and over UDP.
fn by_each<F>(program: F)
where
    F: AsyncFn(World) -> Result<(), Error> + Send + Sync + Copy + 'static,
{
    for (size, device) in [(2, "shm"), (3, "shm"), (2, "udp")] {
        for &carrier in carriers(device) {
            let config = Config { heap: 1 << 20, ..by(carrier) };
            run(size, device, config, async move |world| {
                program(world.clone()).await?;
                // Whatever was wrong, the world is as good as before.
                works(&world).await?;
                Ok(world.barrier().await?)
            });
        }
    }
}

/// Does a bit of everything.
async fn works(world: &World) -> Result<(), Error> {
    world.barrier().await?;
    let (rank, size) = (world.rank(), world.size());
    let array = world.spread::<u64>(3 * size).await?;
    let next = (rank + 1) % size;
    array.at(next).write(1).await?;
    array.at(size + next).put(2)?;
    array.at(2 * size + next).store(3)?;
    world.sync().await?;
    world.all_store_sync().await?;
    let all = array.gather(&[rank, size + rank, 2 * size + rank])?;
    assert_eq!(all.done().await?, [1, 2, 3]);
    assert_eq!(array.at(2 * size).get()?.done().await?, 3);
    array.free().await
}
