//! Ends a test that would wait for ever: because the other end has gone, a connection broke, or
//! nothing has happened for too long.

use std::cell::Cell;
use std::future::{Future, pending};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow, bail};
use doorbell_verbs::{AsyncEvent, Nic};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::sync::broadcast;

use crate::perf::ends::peer::{GONE, Peer};
use crate::perf::shared::patience::LONGEST;

/// A counter of progress: each part of a test adds to it when something has happened.
#[derive(Clone, Default)]
pub struct Beat(Rc<Cell<u64>>);

impl Beat {
    #[inline]
    pub fn count(&self) {
        self.0.set(self.0.get().wrapping_add(1));
    }
}

pub struct Guard {
    nic: Nic,
    line: OwnedFd,
    beat: Beat,
}

/// How often the guard looks whether the other end is still there.
const LOOK: Duration = Duration::from_millis(100);

impl Guard {
    pub fn over(nic: &Nic, peer: &Peer) -> anyhow::Result<Self> {
        let line = peer.line().context("a second handle of the stream to the other end")?;
        Ok(Self { nic: nic.clone(), line, beat: Beat::default() })
    }

    pub fn beat(&self) -> Beat {
        self.beat.clone()
    }

    /// Awaits `done`, unless something goes wrong. The checks run only when `done` is not ready, so
    /// they cost nothing while the test makes progress.
    pub async fn run<T>(&self, done: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let events = self.nic.events();
        tokio::select! {
            biased;
            done = done => done,
            why = broken(events) => Err(why),
            why = self.watch() => Err(why),
        }
    }

    async fn watch(&self) -> Error {
        let (mut seen, mut since) = (self.beat.0.get(), Instant::now());
        let mut received = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(why) = self.is_there() {
                return why;
            }
            let now = self.beat.0.get();
            if std::mem::replace(&mut seen, now) != now {
                since = Instant::now();
            } else if since.elapsed() > LONGEST {
                // The program of an end that is only written to or read from sees nothing happen,
                // but its NIC counts what it receives.
                let now = self.nic.statistics().nic.received;
                if std::mem::replace(&mut received, now) != now {
                    since = Instant::now();
                    continue;
                }
                return anyhow!(
                    "nothing came of the other end within {LONGEST:?}: it was lost, or that hangs"
                );
            }
        }
    }

    /// Returns an error if the stream to the other end has ended. Bytes in the stream are not read.
    fn is_there(&self) -> anyhow::Result<()> {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.line.as_raw_fd(), &mut [0], flags) {
            Ok(0) | Err(Errno::ECONNRESET) => bail!(GONE),
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(why) => Err(why).context("watching the other end"),
        }
    }
}

async fn broken(mut events: broadcast::Receiver<AsyncEvent>) -> Error {
    loop {
        match events.recv().await {
            Ok(AsyncEvent::Broken(qpn, why)) => {
                return Error::new(why).context(format!("the connection of {qpn} broke"));
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => pending().await,
        }
    }
}
