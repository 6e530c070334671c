//! Endpoints of messages, told what no peer of theirs would say.
//!
//! The input is a list of packets, with words and payloads that are often nearly right, in any
//! order. They go to an endpoint that is in the middle of receives, held messages and handlers, and
//! that has another peer, which keeps the rules.
//!
//! What is checked: nothing panics, the other peer's messages are received, everything that
//! concerned the peer ends when it has gone, and what the peer may have the endpoint hold meanwhile
//! is bounded, where the endpoint counts that.
//!
//! Packets go over shared memory between endpoints of one thread, so that the code that receives is
//! all that a peer meets.

mod frames;
#[path = "../input.rs"]
mod input;
mod streams;
mod tagged;
mod words;

use std::cell::RefCell;
use std::thread::LocalKey;
use std::time::Duration;

use tokio::runtime::Runtime;

use input::Input;

/// How long anything may take. It is the bound of a test that would hang else.
const LONG: Duration = Duration::from_secs(60);

/// The most packets of an input.
const MOST: usize = 64;

/// A runtime and the endpoints that live in it, which serve all inputs of a target.
type World<T> = RefCell<Option<(T, Runtime)>>;

/// Runs a test of an input in a world, which is made for the first input.
fn run<T>(
    world: &'static LocalKey<World<T>>,
    open: impl AsyncFn() -> T,
    test: impl AsyncFnOnce(&T),
) {
    world.with_borrow_mut(|world| {
        let (there, runtime) = world.get_or_insert_with(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            (runtime.block_on(open()), runtime)
        });
        runtime.block_on(async {
            tokio::time::timeout(LONG, test(there)).await.expect("each end goes on");
        });
    });
}

/// Gives the packets of an input to an endpoint of tagged messages.
pub fn tagged(data: &[u8]) {
    thread_local! {
        static WORLD: World<tagged::Tagged> = const { RefCell::new(None) };
    }
    run(&WORLD, tagged::Tagged::open, async |world| world.hears(&mut Input(data)).await);
}

/// Gives the packets of an input to an endpoint of streams.
pub fn streams(data: &[u8]) {
    thread_local! {
        static WORLD: World<streams::Streams> = const { RefCell::new(None) };
    }
    run(&WORLD, streams::Streams::open, async |world| world.hears(&mut Input(data)).await);
}

/// Gives the frames of an input to an endpoint of frames.
pub fn emp_rmpp(data: &[u8]) {
    thread_local! {
        static WORLD: World<frames::Frames> = const { RefCell::new(None) };
    }
    run(&WORLD, frames::Frames::open, async |world| world.hears(&mut Input(data)).await);
}
