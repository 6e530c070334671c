//! Every collective over links of a program's own. Sends wait until they are received, as links may
//! have it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_collectives::{Group, Links};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

use crate::program::{self, LENGTHS};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// A message, and who is told that it was received.
type Sent = (u64, Bytes, oneshot::Sender<()>);

#[derive(Debug, thiserror::Error)]
#[error("the other member has gone")]
struct Gone;

/// Links by channels without room, whose receives let others go first as they like.
struct Channels {
    rank: usize,
    /// How many receives were begun.
    begun: AtomicUsize,
    to: Vec<mpsc::UnboundedSender<Sent>>,
    from: Vec<Mutex<(mpsc::UnboundedReceiver<Sent>, Vec<Sent>)>>,
}

impl Channels {
    /// Lets other futures of the task go first, sometimes.
    async fn dawdle(&self) {
        for _ in 0..self.begun.fetch_add(1, Ordering::Relaxed) * 7 % 3 {
            tokio::task::yield_now().await;
        }
    }
}

impl Links for Channels {
    type Error = Gone;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    async fn send(&self, to: usize, tag: u64, body: Bytes) -> Result<(), Gone> {
        let (taken, is_taken) = oneshot::channel();
        self.to[to].send((tag, body, taken)).map_err(|_| Gone)?;
        is_taken.await.map_err(|_| Gone)
    }

    async fn receive(&self, from: usize, tag: u64, mask: u64) -> Result<(u64, Bytes), Gone> {
        self.dawdle().await;
        let (channel, waiting) = &mut *self.from[from].lock().await;
        let at = loop {
            if let Some(at) = waiting.iter().position(|(other, ..)| (other ^ tag) & mask == 0) {
                break at;
            }
            waiting.push(channel.recv().await.ok_or(Gone)?);
        };
        let (tag, body, taken) = waiting.remove(at);
        let _ = taken.send(());
        Ok((tag, body))
    }
}

/// The links of all members of a group.
fn links(size: usize) -> Vec<Channels> {
    let channels = |rank| {
        let begun = AtomicUsize::new(rank);
        Channels { rank, begun, to: Vec::new(), from: Vec::new() }
    };
    let mut links: Vec<_> = (0..size).map(channels).collect();
    for from in 0..size {
        for to in 0..size {
            let (sends, receives) = mpsc::unbounded_channel();
            links[from].to.push(sends);
            links[to].from.push(Mutex::new((receives, Vec::new())));
        }
    }
    links
}

#[tokio::test]
async fn collectives_over_links_without_buffers_give_what_they_should() {
    for size in 1..=9 {
        let members = links(size).into_iter().map(|links| {
            tokio::spawn(async move {
                let group = Group::over(links);
                for len in LENGTHS {
                    program::all(&group, len).await;
                }
            })
        });
        for member in members.collect::<Vec<_>>() {
            timeout(LONG, member).await.expect("it ends in time").expect("no panic");
        }
    }
}
