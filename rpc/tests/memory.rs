//! How much memory a call allocates whose handler runs as a task.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use doorbell::rpc::{Channel, Client, Method, Router, Server};

const NONE: Method<(), ()> = Method::new("none");

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which adds up for each thread how many bytes it is asked for.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged, under the same contract;
// the counter is a constant-initialised cell without a destructor and allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size());
        // SAFETY: the caller's promises about the layout are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: whatever is given back came from `System` above, with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[tokio::test]
async fn a_call_whose_handler_runs_as_a_task_allocates_no_room_for_streams_and_long_bodies() {
    /// The most bytes that a call may allocate at both ends together. A stream or a long body takes
    /// more.
    const MOST: usize = 8192;
    /// How many calls are made, so that memory that is allocated once does not count.
    const CALLS: usize = 1000;
    let router = Router::new().unary(NONE, |_| async { Ok(()) });
    let server = Server::builder().add_service(router).open("shm").await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel);
    let before = BYTES.get();
    for _ in 0..CALLS {
        client.unary(NONE, ()).await.expect("the call is answered");
    }
    let each = (BYTES.get() - before) / CALLS;
    assert!(each <= MOST, "a call allocates {each} bytes, and {MOST} are allowed");
}
