//! The end of a test that follows: it counts what comes, until the last has come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use doorbell_verbs::Nic;
use serde_json::json;
use tokio::sync::Notify;

use super::verbs::Guard;
use crate::perf::ends::peer::Peer;

/// The observations of the end that follows.
#[derive(Default)]
pub struct Told {
    pub count: AtomicU64,
    pub wrong: AtomicU64,
    pub ended: Notify,
}

impl Told {
    /// Counts a message, or a piece of one, which is right or wrong.
    pub fn count(&self, right: bool) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if !right {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until the last message has come, and fails if any was wrong.
pub async fn follow(guard: &Guard, told: &Told) -> anyhow::Result<()> {
    let beat = guard.beat();
    guard
        .run(async {
            loop {
                let before = told.count.load(Ordering::Relaxed);
                tokio::select! {
                    () = told.ended.notified() => break,
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
                if told.count.load(Ordering::Relaxed) != before {
                    beat.count();
                }
            }
            match told.wrong.load(Ordering::Relaxed) {
                0 => Ok(()),
                wrong => bail!("{wrong} messages are not what they should be"),
            }
        })
        .await
}

/// Tells the other end the name of an endpoint, and returns the name of the other end's.
pub fn meet(name: &str, peer: &mut Peer, nic: &Nic) -> anyhow::Result<String> {
    let theirs = peer.swap_while(&json!(name), || {
        nic.turn();
        Ok(())
    })?;
    Ok(theirs.as_str().context("the other end's name")?.to_owned())
}
