//! Code of the program's own that the library runs in the middle of an operation: functions that
//! are applied, and conditions of waits. They may use the world, and poll other futures.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use doorbell_splitc::{Apply, Carrier, Config, Error, Private, Spread, World};

use crate::common::{by, run};
use crate::private::in_place;

type Opening = Pin<Box<dyn Future<Output = Result<Private<'static, u64>, Error>>>>;

thread_local! {
    /// A future that the function drives, and whether it was done there.
    static OPENING: RefCell<Option<Opening>> = const { RefCell::new(None) };
    static OPENED: Cell<bool> = const { Cell::new(false) };
    /// A world that the function flushes, and the outcome.
    static FLUSHED: RefCell<Option<World>> = const { RefCell::new(None) };
    static OUTCOME: RefCell<Option<Result<(), String>>> = const { RefCell::new(None) };
}

/// Long enough for another process to come as far as it can.
const LOOKS: usize = 300;

const SET: Apply<u64, u64, u64> = Apply::new("set", |value, to| {
    if let Some(mut opening) = OPENING.take() {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..LOOKS {
            if let Poll::Ready(opened) = opening.as_mut().poll(&mut context) {
                OPENED.set(true);
                drop(opened);
                return std::mem::replace(value, to);
            }
            thread::sleep(Duration::from_millis(1));
        }
        OPENING.set(Some(opening));
    }
    std::mem::replace(value, to)
});

/// The function had made the array private before its value was written: into the other process's
/// slice.
#[test]
fn a_function_that_opens_a_private_epoch_of_its_own_value_opens_it_after_the_value_is_written() {
    run(2, "shm", Config { heap: 1 << 20, ..by(Carrier::Mapped) }, async |world| {
        world.define(SET).await?;
        let array: &'static Spread<u64> = Box::leak(Box::new(world.spread::<u64>(2).await?));
        if world.rank() == 0 {
            OPENING.set(Some(Box::pin(in_place(array))));
            array.at(1).apply(SET, 77).await?;
            assert!(!OPENED.get(), "the epoch was open before the value was written");
            let part = OPENING.take().expect("it was not done").await?;
            drop(part);
        } else {
            let part = in_place(array).await?;
            assert_eq!(*part, [77]);
            drop(part);
        }
        array.share().await?;
        Ok(world.barrier().await?)
    });
}

const FLUSH: Apply<u64, u64, u64> = Apply::new("flush", |value, to| {
    if let Some(world) = FLUSHED.take() {
        OUTCOME.set(Some(world.flush_now().map_err(|why| why.to_string())));
    }
    std::mem::replace(value, to)
});

/// The store was taken for one that can never be sent, and dropped.
#[test]
fn a_store_that_a_function_could_not_send_is_sent_later() {
    static FLUSHES: AtomicBool = AtomicBool::new(true);
    run(2, "shm", Config { heap: 1 << 20, ..by(Carrier::Messages) }, async |world| {
        world.define(FLUSH).await?;
        let (array, other) = (world.spread::<u64>(2).await?, world.spread::<u64>(2).await?);
        if world.rank() == 0 {
            FLUSHED.set(Some(world.clone()));
            array.at(1).store(7)?;
            while OUTCOME.with_borrow(Option::is_none) {
                world.poll();
            }
            FLUSHES.store(false, Ordering::Release);
            let why = OUTCOME.take().expect("it was set").expect_err("a handler only replies");
            assert!(why.contains("a handler may only reply"), "{why}");
        } else {
            // A process that computes for long has another thread run functions.
            while FLUSHES.load(Ordering::Acquire) {
                other.at(0).apply(FLUSH, 1).await?;
            }
        }
        world.all_store_sync().await?;
        assert_eq!(array.at(1).read().await?, 7);
        Ok(world.barrier().await?)
    });
}

/// The condition waited for a credit, and the wait that ran the condition would have fetched that.
#[test]
fn a_condition_that_sends_more_than_the_peer_takes_gets_an_error_and_its_wait_goes_on() {
    let config = || Config { heap: 1 << 20, credits: 1, ..by(Carrier::Messages) };
    for device in ["shm", "udp:127.0.0.1:0"] {
        run(2, device, config(), async |world| {
            let (array, other) = (world.spread::<u64>(2).await?, world.spread::<u64>(2).await?);
            let (own, far) = (world.rank(), 1 - world.rank());
            let failed = Cell::new(None);
            let waits = array.at(own).wait_until(|value| {
                for number in 0..200 {
                    let sent = other.at(far).store(number).and_then(|()| world.flush_now());
                    if let Err(why) = sent {
                        failed.set(Some(why.to_string()));
                        break;
                    }
                }
                value == 1
            });
            let (waited, written) = tokio::join!(waits, array.at(far).write(1));
            waited?;
            written?;
            let why = failed.take().expect("a credit is used up");
            assert!(why.contains("the condition of a wait"), "{why}");
            Ok(world.all_store_sync().await?)
        });
    }
}

/// Each wait of the process sent to all peers first, and so waited for the one that takes nothing.
#[test]
fn a_peer_that_takes_no_messages_holds_up_only_what_goes_to_it() {
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    const WORDS: usize = 8000;
    let config = Config { heap: 1 << 20, credits: 2, ..by(Carrier::Messages) };
    run(3, "shm", config, async |world| {
        let array = world.blocked::<u64>(3 * WORDS).await?;
        world.barrier().await?;
        match world.rank() {
            0 => {
                let span = world.span(array.pointer(2 * WORDS)?, WORDS);
                let ones = vec![1; WORDS];
                let reads = async {
                    tokio::task::yield_now().await;
                    for _ in 0..20 {
                        array.at(WORDS).read().await?;
                        array.at(WORDS).write(1).await?;
                    }
                    GOES_ON.store(true, Ordering::Release);
                    Ok::<_, Error>(())
                };
                let (stored, read) = tokio::join!(span.store_async(&ones), reads);
                stored.and(read)?;
            }
            1 => {
                while !GOES_ON.load(Ordering::Acquire) {
                    world.flush().await?;
                }
            }
            // It takes nothing.
            _ => {
                while !GOES_ON.load(Ordering::Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(world.all_store_sync().await?)
    });
}
