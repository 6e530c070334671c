//! The endpoint of a group, and the connections that the group makes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_verbs::floor::locked;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::endpoint::{Endpoint, Event};
use crate::error::{ConnectError, Undeliverable};
use crate::group::config::GroupConfig;
use crate::group::error::GroupError;
use crate::group::failure::{Cause, Failure};
use crate::group::mailbox::Mailbox;
use crate::group::team::{Team, mixed};
use crate::group::wire::{self, HELLO, Verdict};
use crate::handlers::{Handlers, WithState};
use crate::peer::Peer;
use crate::progress::Bundle;

/// The first pause between attempts to connect to a member. Each pause is longer than the one
/// before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between attempts to connect to a member.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The longest patience that a clock can count, which stands for longer ones.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The endpoints and the mailbox of one member of a group, shared by all teams of that member.
pub(in crate::group) struct Core {
    /// The first of the united bundles that the endpoints are in: a wait at it serves all.
    pub bundle: Bundle,
    pub mailbox: Arc<Mailbox>,
    /// An endpoint in each bundle.
    endpoints: Vec<Endpoint>,
    /// The place among the endpoints of the one by which each member is reached.
    ways: Box<[usize]>,
    patience: Duration,
    pub stall: Duration,
    /// A lock for each member that was ever to be connected to, so that tasks which need the same
    /// member make one connection.
    turns: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    digest: u64,
    watchers: Vec<AbortHandle>,
}

impl Core {
    /// Opens the endpoints of a group, one in each bundle, and makes the team of the whole group.
    /// The member of rank `r` is connected to through the bundle `ways[r]`.
    pub async fn open(
        bundles: &[Bundle],
        ways: Box<[usize]>,
        config: GroupConfig,
    ) -> Result<Arc<Self>, GroupError> {
        config.check()?;
        let bundle = &bundles[0];
        let own = config.endpoint();
        let GroupConfig { rank, members, patience, stall, longest, .. } = config;
        let digest = members
            .iter()
            .fold(members.len() as u64, |digest, name| mixed(digest ^ name.service().0));
        let mailbox = Arc::new(Mailbox::new(rank, members.into(), longest, bundle));
        // The team must exist before any member can send something for it.
        mailbox.make(Arc::new(Team {
            context: 0,
            rank,
            names: mailbox.names.clone(),
            members: None,
        }));
        let mut endpoints = Vec::new();
        for bundle in bundles {
            let opened = Endpoint::builder()
                .config(own.clone())
                .on_bundle(bundle, handlers(mailbox.clone(), digest))
                .await;
            endpoints.push(opened.map_err(|why| GroupError::Open(Arc::new(why)))?);
        }
        let watchers = endpoints.iter().map(|endpoint| {
            let watch = watch(mailbox.clone(), endpoint.events());
            bundle.runtime().spawn(watch).abort_handle()
        });
        let watchers = watchers.collect();
        let bundle = bundle.clone();
        let turns = Mutex::default();
        Ok(Arc::new(Self {
            bundle,
            mailbox,
            endpoints,
            ways,
            patience,
            stall,
            turns,
            digest,
            watchers,
        }))
    }

    /// Makes a new connection to a member.
    pub async fn dial(&self, whole: u32) -> Result<Peer, ConnectError> {
        let endpoint = &self.endpoints[self.ways[whole as usize]];
        endpoint.connect(&self.mailbox.names[whole as usize]).await
    }

    /// Returns the connection to a member, after making one if there is none.
    pub async fn peer(self: &Arc<Self>, whole: u32) -> Result<Peer, Failure> {
        if let Some(peer) = self.mailbox.peer(whole) {
            return Ok(peer.clone());
        }
        // The attempts run in a task of the bundle's runtime, since the caller's may have no
        // timers.
        let core = self.clone();
        let reached = self.bundle.runtime().spawn(async move { core.reach(whole).await });
        match reached.await {
            Ok(reached) => reached,
            Err(_) => {
                let why = "the runtime of the bundle was shut down".into();
                Err(Failure { whole, after: 0, cause: Cause::Unreached(why) })
            }
        }
    }

    /// Connects to a member, and repeats the attempt for as long as the configuration says.
    async fn reach(&self, whole: u32) -> Result<Peer, Failure> {
        let failed = |cause| Failure { whole, after: 0, cause };
        let turn = locked(&self.turns).entry(whole).or_default().clone();
        let _turn = turn.lock().await;
        if let Some(peer) = self.mailbox.peer(whole) {
            return Ok(peer.clone());
        }
        let (until, mut pause) =
            (Instant::now() + self.patience.min(LONGEST_PATIENCE), FIRST_PAUSE);
        loop {
            let connected = timeout_at(until, self.connect(whole)).await;
            // The member may have connected to this one meanwhile.
            if let Some(peer) = self.mailbox.peer(whole) {
                return Ok(peer.clone());
            }
            let why = match connected {
                Ok(Ok(Verdict::Leaving)) => "it is about to leave the group".to_owned(),
                Ok(Ok(_)) => return Err(failed(Cause::OtherGroup)),
                Ok(Err(Refused { why, is_final: true })) => {
                    return Err(failed(Cause::Unreached(why.into())));
                }
                Ok(Err(Refused { why, .. })) => why,
                Err(_) => "it has not answered in time".to_owned(),
            };
            if Instant::now() + pause >= until {
                let why = format!("{why}; it was tried for {:?}", self.patience);
                return Err(failed(Cause::Unreached(why.into())));
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    /// Connects to a member once.
    async fn connect(&self, whole: u32) -> Result<Verdict, Refused> {
        let peer = self.dial(whole).await?;
        let hello = (self.mailbox.own, self.mailbox.size() as u32, self.digest);
        let verdict = peer.call(HELLO, hello).await;
        let verdict = verdict
            .map(Verdict::from_word)
            .map_err(|why| Refused { why: why.to_string(), is_final: false })?;
        if verdict == Verdict::Welcome {
            self.mailbox.is_connected(whole, peer);
        }
        Ok(verdict)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.watchers.iter().for_each(AbortHandle::abort);
    }
}

/// The reason why an attempt to connect has failed, and whether another attempt must fail, too.
struct Refused {
    why: String,
    is_final: bool,
}

impl From<ConnectError> for Refused {
    fn from(why: ConnectError) -> Self {
        let is_final = why.is_final();
        let mut text = why.to_string();
        let mut next = std::error::Error::source(&why);
        while let Some(source) = next {
            text += &format!(": {source}");
            next = source.source();
        }
        Self { why: text, is_final }
    }
}

/// Watches for the ends of a group's connections, for as long as the group's endpoint is open.
async fn watch(mailbox: Arc<Mailbox>, mut events: broadcast::Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(Event::Gone(peer, ending)) => mailbox.has_ended(&peer, &ending.to_string()),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => mailbox.look_for_ended(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// The message handlers of a group's endpoint, which put what arrives into the mailbox.
fn handlers(mailbox: Arc<Mailbox>, digest: u64) -> Handlers<WithState<Arc<Mailbox>>> {
    let returns = mailbox.clone();
    Handlers::with(mailbox)
        .returned(move |returned| {
            // A message that came back was not taken by its member, and the member is as good as
            // gone. If the member has gone indeed, the end of the connection tells.
            if returned.why() != Undeliverable::PeerGone {
                returns.has_ended(&returned.peer(), &returned.to_string());
            }
        })
        .on(wire::PIECE, |mailbox, _, (context, sequence, label, total, piece)| {
            mailbox.arrives(context, sequence, label, total, piece);
        })
        .on(wire::MORE, |mailbox, _, (context, sequence, label, offset, piece)| {
            mailbox.goes_on(context, sequence, label, offset, &piece);
        })
        .on(wire::CLEAR, |mailbox, _, (context, sequence, label)| {
            mailbox.clears(context, sequence, label);
        })
        .on(wire::WAITS, |mailbox, _, (context, sequence, label)| {
            mailbox.hears_waiting(context, sequence, label);
        })
        .on(wire::BROKEN, |mailbox, _, (context, word, after, first, second, text)| {
            let failure =
                wire::failure_of_words(word, after, [first, second], text, mailbox.size());
            mailbox.hears_of(context, failure);
        })
        .on(wire::LEAVE, |mailbox, _, (context, whole, last)| {
            mailbox.hears_leaving(context, whole, last);
        })
        .on(HELLO, move |mailbox, request, (rank, size, theirs)| {
            let is_member = size as usize == mailbox.size() && theirs == digest && rank < size;
            let verdict = match (is_member, mailbox.is_leaving()) {
                (false, _) => Verdict::OtherGroup,
                (true, true) => Verdict::Leaving,
                (true, false) => {
                    // With a tag, both sides have proved that they know it. So either may send.
                    mailbox.is_connected(rank, request.peer());
                    Verdict::Welcome
                }
            };
            verdict.word()
        })
}
