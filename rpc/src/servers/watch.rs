//! The task that looks for servers again and again, and tells what has changed.

use std::collections::HashSet;
use std::time::Duration;

use doorbell_am::Name;
use tokio::sync::mpsc::Sender;
use tower::discover::Change;

use super::source::{LookUp, Source};
use crate::client::{ChannelBuilder, WhenReady};
use crate::deadlines::deadline_after;
use crate::status::chain;

/// Looks for servers by `source`, at intervals of `every`, until nobody hears of the changes any
/// more. `first` is what was found before, if somebody has looked. Channels to the servers are made
/// by `channels`.
pub async fn watch(
    (mut source, every): (Source, Duration),
    channels: ChannelBuilder,
    mut first: Option<LookUp>,
    tells: Sender<Change<Name, WhenReady>>,
) {
    let mut known = Known { servers: HashSet::new(), channels, tells };
    let mut warned = None;
    while !known.tells.is_closed() {
        let found = match first.take() {
            Some(found) => found,
            None => source().await,
        };
        match found {
            Ok(names) => {
                warned = None;
                known.update(names).await;
            }
            Err(why) => {
                let why = chain(&*why);
                if warned.as_ref() != Some(&why) {
                    let known = known.servers.len();
                    tracing::warn!(%why, known, "no servers found; those that are known stay");
                    warned = Some(why);
                }
            }
        }
        tokio::time::sleep_until(deadline_after(every)).await;
    }
}

/// The servers that are known, and who is told of changes.
struct Known {
    servers: HashSet<Name>,
    channels: ChannelBuilder,
    tells: Sender<Change<Name, WhenReady>>,
}

impl Known {
    /// Tells of the servers that have come, and then of those that have gone. A server for which no
    /// channel can be made is left out until the next look.
    async fn update(&mut self, names: Vec<Name>) {
        let present: HashSet<_> = names.into_iter().collect();
        let come: Vec<_> = present.difference(&self.servers).cloned().collect();
        let gone: Vec<_> = self.servers.difference(&present).cloned().collect();
        for name in come {
            match self.channels.clone().connect_lazily(&name).await {
                Ok(channel) => {
                    self.servers.insert(name.clone());
                    self.tell(Change::Insert(name, channel.when_ready())).await;
                }
                Err(why) => tracing::warn!(%why, %name, "no channel to a server"),
            }
        }
        for name in gone {
            self.servers.remove(&name);
            self.tell(Change::Remove(name)).await;
        }
    }

    async fn tell(&self, change: Change<Name, WhenReady>) {
        // Nobody listens any more if this fails, and then the task ends.
        let _ = self.tells.send(change).await;
    }
}
