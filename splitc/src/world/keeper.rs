//! Signs of life from a process that computes for long.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use doorbell_am::Bundle;

/// How many times a process serves its peers in the time after which they take a silent process for
/// dead.
const TIMES: u32 = 8;
/// The longest pause between two times.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How many turns the NIC takes each time. A single turn may look at only one of several sockets,
/// and not at the clock; this many turns look at all of them.
const TURNS: u32 = 128;

/// A thread that now and then serves the peers of a process, so that they don't take the process
/// for dead while it computes. The thread ends when the value is dropped.
pub(super) struct Keeper(#[expect(dead_code, reason = "its end tells the thread")] Sender<()>);

impl Keeper {
    /// Starts the thread, for a process that is dead to its peers after a silence of `patience`.
    pub fn start(bundle: &Bundle, patience: Duration) -> io::Result<Self> {
        let (alive, ended) = channel();
        let pause = (patience / TIMES).clamp(Duration::from_millis(1), LONGEST_PAUSE);
        let bundle = bundle.clone();
        let serve = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
                for _ in 0..TURNS {
                    bundle.poll(true);
                }
            }
        };
        std::thread::Builder::new().name("keeper".to_owned()).spawn(serve)?;
        Ok(Self(alive))
    }
}
