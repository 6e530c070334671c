//! The dedicated mode: a thread of its own that runs a NIC.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::engine::{ProgressEngine, TURNS_A_LOOK};
use super::patience::TURNS_A_POLL;
use super::watch_timer::Keeper;
use crate::sys::thread::{pin_to, wait_either};

impl ProgressEngine {
    /// Starts a thread that runs the NIC for as long as programs have handles, pinned to the
    /// processor `core` if that is given. The thread sleeps when nothing has come for `spin`;
    /// without a `spin` it never sleeps.
    pub fn dedicate(
        self: &Arc<Self>,
        core: Option<usize>,
        spin: Option<Duration>,
    ) -> io::Result<()> {
        let fd = self.watch.readiness.try_clone()?;
        let engine = Arc::downgrade(self);
        let (ends, ended) = UnixStream::pair()?;
        let (pinned, is_pinned) = std::sync::mpsc::channel();
        let body = move || {
            let result = core.map_or(Ok(()), pin_to);
            let goes = result.is_ok();
            if pinned.send(result).is_ok() && goes {
                run(&engine, spin, &fd, &ended);
            }
        };
        std::thread::Builder::new().name("doorbell-nic".into()).spawn(body)?;
        is_pinned.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        self.watch.keep(Keeper::Thread { _ends: ends });
        Ok(())
    }
}

/// The body of the thread that runs a NIC.
fn run(engine: &Weak<ProgressEngine>, spin: Option<Duration>, fd: &OwnedFd, ended: &UnixStream) {
    let mut since = None;
    loop {
        // The NIC ends with the last handle of a program, and not with this thread.
        let Some(engine) = ProgressEngine::upgrade(engine) else { return };
        let Some(mut adapter) = engine.lock.enter() else {
            std::hint::spin_loop();
            continue;
        };
        adapter.disarm();
        let mut rests = false;
        for turn in 1..=TURNS_A_POLL {
            let turned = engine.step(&mut adapter);
            engine.settle(&mut adapter);
            if turned.found {
                since = None;
            }
            if adapter.is_wanted() {
                break;
            }
            if turn % TURNS_A_LOOK == 0 {
                let now = adapter.now();
                let idle = now.since(*since.get_or_insert(now));
                rests = spin.is_some_and(|spin| idle >= spin) && engine.arm(&mut adapter);
                if rests {
                    break;
                }
            }
        }
        let wanted = adapter.is_wanted();
        engine.release(adapter);
        drop(engine);
        if rests {
            since = None;
            if !wait_either(fd, ended) {
                return;
            }
        } else if wanted {
            std::thread::yield_now();
        }
    }
}
