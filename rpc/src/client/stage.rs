//! The stages of a call, so that a call whose deadline passes can say what it was waiting for.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::status::Status;

/// A stage of a call that was sent: the thing that the call is waiting for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Stage {
    /// The answer of the server.
    Answer,
    /// Memory of the server for the long body of the request.
    MemoryThere,
    /// The end of writing the long body of the request.
    Written,
    /// Memory of the channel for the long body of the response.
    MemoryHere,
    /// The long body of the response.
    Received,
}

/// The stage that a call has reached, and the length of the body that the stage is about.
pub struct Progress {
    stage: AtomicU8,
    len: AtomicUsize,
}

impl Progress {
    /// The progress of a call that waits for its answer.
    pub fn new() -> Self {
        Self { stage: AtomicU8::new(Stage::Answer as u8), len: AtomicUsize::new(0) }
    }

    /// Notes that the call has reached a stage, which is about a body of `len` bytes.
    pub fn reaches(&self, stage: Stage, len: usize) {
        self.len.store(len, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Whether the call has got as far as the long body of its response.
    pub fn is_receiving(&self) -> bool {
        let stage = self.stage.load(Ordering::Relaxed);
        [Stage::MemoryHere, Stage::Received].iter().any(|&at| at as u8 == stage)
    }

    /// The status of a call whose deadline has passed at this stage.
    #[cold]
    pub fn too_late(&self) -> Status {
        let (stage, len) = (self.stage.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed));
        let late = "before the call's time was over";
        let is = |at: Stage| at as u8 == stage;
        Status::deadline_exceeded(if is(Stage::MemoryThere) {
            format!(
                "the server has lent no memory for the {len} bytes of the request {late}: other bodies use up \
                 its `body_memory`, or it is overloaded"
            )
        } else if is(Stage::Written) {
            format!("the {len} bytes of the request were not all sent {late}")
        } else if is(Stage::MemoryHere) {
            format!(
                "there was no memory for the {len} bytes of the response {late}: other responses that are on \
                 their way, and messages of streams that the program has not read, use up the channel's \
                 `body_memory`"
            )
        } else if is(Stage::Received) {
            format!("the {len} bytes of the response had not all come {late}")
        } else {
            format!("the server has not answered {late}")
        })
    }
}
