//! Random operations of several futures of a process, awaited and dropped, while another future
//! makes arrays private, shares them again, frees them and allocates others.
//!
//! The slices of the private parts are watched: as long as a process has one, nothing changes in it
//! but what the process writes.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_splitc::{Config, Error, ErrorKind, GlobalPtr, Spread, World};

use crate::common::{by, carriers, run};
use crate::private::in_place;

/// How many words each process has of an array: more than a message takes.
const WORDS: usize = 2000;

/// How many futures of a process do random operations.
const FUTURES: u64 = 3;

/// What the futures of a process share.
struct Shared {
    world: World,
    /// Pointers to the first elements of the parts of arrays, those of freed arrays among them.
    parts: RefCell<Vec<GlobalPtr<u64>>>,
    /// Whether the future that makes arrays private is done.
    over: Cell<bool>,
}

impl Shared {
    fn adds(&self, array: &Spread<u64>) -> Result<(), Error> {
        let mut parts = self.parts.borrow_mut();
        for rank in 0..self.world.size() {
            parts.push(array.pointer(rank * WORDS)?);
        }
        // Those of the last few arrays are enough.
        let old = parts.len().saturating_sub(6 * self.world.size());
        parts.drain(..old);
        Ok(())
    }

    fn pick(&self, luck: &mut Luck) -> GlobalPtr<u64> {
        let parts = self.parts.borrow();
        parts[luck.below(parts.len() as u64) as usize]
    }
}

/// Polls a future so many times at most, and drops it if it is not done then. Between two polls
/// other futures run up to `pause` times, so that the world may change meanwhile.
async fn up_to<T>(polls: u64, pause: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context)));
        if let Poll::Ready(output) = polled.await {
            return Some(output);
        }
        for _ in 0..pause {
            tokio::task::yield_now().await;
        }
    }
    None
}

/// Does a random operation. The error may say that the array is private or freed, and nothing else.
async fn operation(shared: &Shared, luck: &mut Luck) -> Result<(), Error> {
    let world = &shared.world;
    let (part, len) = (shared.pick(luck), 1 + luck.below(WORDS as u64) as usize);
    let from = luck.below((WORDS - len + 1) as u64) as isize;
    let (one, span) = (world.at(part.local_add(from)), world.span(part.local_add(from), len));
    let values = vec![luck.draw() | 1; len];
    match luck.below(18) {
        0 => one.read().await.map(drop),
        1 => one.write(values[0]).await,
        2 => one.get()?.done().await.map(drop),
        3 => one.put(values[0]).map(drop),
        4 => one.store(values[0]),
        5 => one.store_async(values[0]).await,
        6 => one.fetch_add(values[0]).await.map(drop),
        7 => one.store_add_async(values[0]).await,
        8 => one.compare_swap(0, values[0]).await.map(drop),
        9 => span.read().await.map(drop),
        10 => span.write(&values).await,
        11 => span.put(&values).map(drop),
        12 => span.store(&values),
        13..16 => span.store_async(&values).await,
        16 => {
            let own = world.at(part.on(world.rank()));
            let found = up_to(20, 1, own.wait_until(|value| value == 1)).await;
            found.unwrap_or(Ok(1)).map(drop)
        }
        _ => world.flush().await,
    }
}

/// Does random operations until the arrays are done with, and drops some of them on the way.
async fn disturbs(shared: &Shared, seed: u64) {
    let mut luck = Luck::new(seed);
    while !shared.over.get() {
        let polls = [3, u64::MAX][luck.below(2) as usize];
        let pause = [1, 1 + luck.below(200)][luck.below(2) as usize];
        let done = up_to(polls, pause, operation(shared, &mut luck)).await;
        if let Some(Err(why)) = done {
            assert!(matches!(why.kind(), ErrorKind::Access(_)), "{why}");
        }
        tokio::task::yield_now().await;
    }
}

/// Has the own part for itself for a while, and looks whether anything changes there.
async fn watches(world: &World, array: &Spread<u64>, luck: &mut Luck) -> Result<(), Error> {
    let own = (world.rank() as u64 + 1) << 32;
    let mut part = match luck.below(4) {
        0 => array.private().await?,
        _ => in_place(array).await?,
    };
    for turn in 0..1 + luck.below(4) {
        part.fill(own | turn);
        for _ in 0..1 + luck.below(10) {
            world.flush().await?;
        }
        let wrong = part.iter().position(|&word| word != own | turn);
        assert_eq!(wrong, None, "word {wrong:?} of process {} has changed", world.rank());
    }
    drop(part);
    array.share().await
}

/// Makes arrays private, shares them, frees them and allocates others, all as the seed says, which
/// is the same for all processes.
async fn changes(shared: &Shared, seed: u64) -> Result<(), Error> {
    let (world, mut luck) = (&shared.world, Luck::new(seed));
    let mut arrays = Vec::new();
    for _ in 0..2 {
        arrays.push(world.blocked::<u64>(WORDS * world.size()).await?);
        shared.adds(&arrays[arrays.len() - 1])?;
    }
    for _ in 0..12 {
        let at = luck.below(2) as usize;
        match luck.below(8) {
            0..4 => watches(world, &arrays[at], &mut luck).await?,
            4 | 5 => {
                arrays.swap_remove(at).free().await?;
                arrays.push(world.blocked::<u64>(WORDS * world.size()).await?);
                shared.adds(&arrays[1])?;
            }
            6 => world.all_store_sync().await?,
            _ => world.barrier().await?,
        }
    }
    Ok(())
}

async fn plays(world: World, seed: u64) -> Result<(), Error> {
    let parts = RefCell::new(vec![GlobalPtr::null()]);
    let shared = &Shared { world, parts, over: Cell::new(false) };
    let own = seed * 64 + shared.world.rank() as u64 * FUTURES;
    let changes = async {
        let done = changes(shared, seed).await;
        shared.over.set(true);
        done
    };
    let (done, ..) = tokio::join!(
        changes,
        disturbs(shared, own),
        disturbs(shared, own + 1),
        disturbs(shared, own + 2)
    );
    done?;
    shared.world.sync().await?;
    assert_eq!(shared.world.refused(), 0, "a process has sent what is refused here");
    // A process that waits for an element takes it ill if all other programs end.
    shared.world.barrier().await
}

#[test]
fn no_operation_of_any_future_changes_a_private_slice_whatever_is_dropped_or_freed_meanwhile() {
    for seed in 0..effort(2, 400) {
        for (device, size) in [("shm", 2), ("shm", 3), ("udp", 2)] {
            for &carrier in carriers(device) {
                println!("seed {seed}, {size} processes, {device}, {carrier}");
                let credits = [1, 2, 64][seed as usize % 3];
                let config = Config { credits, heap: 1 << 20, ..by(carrier) };
                run(size, device, config, async move |world| Ok(plays(world, seed).await?));
            }
        }
    }
}
