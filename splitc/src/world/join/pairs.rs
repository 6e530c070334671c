//! Queue pairs between all processes for one-sided requests, and the mapping of heaps.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::time::Duration;

use doorbell_am::proof::{Challenges, Nonce, Posed, Proof};
use doorbell_job::Route;
use doorbell_verbs::{
    ConnectError, Connection, Incoming, Listener, Mapped, Name, Private, Queues, QueuesConfig,
    Region, RemoteMemory, ResourceError, ServiceId, Unconnected,
};
use futures_util::future::{join_all, try_join_all};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::introductions::{
    Asked, Between, Challenge, DIFFERENT_KEY, Introduction, Knock, MAGIC, Same,
};
use super::joining::{Joining, Purpose};
use super::membership::{Attempt, JoinError};
use crate::causes::with_causes;
use crate::world::port::REQUESTS;

/// The queue pair between this process and another, and access to the other's heap.
pub(super) struct Pair {
    pub queues: Queues,
    pub heap: RemoteMemory,
    /// The heap of the other process, if loads and stores reach it.
    pub memory: Option<Region>,
    /// The mapping of the other's heap, if it is of another process of the machine.
    pub mapped: Option<Mapped>,
}

/// The processes that this one has met so far, and those that turned out not to be of its world.
#[derive(Default)]
struct Met {
    pairs: RefCell<HashMap<usize, (Queues, RemoteMemory)>>,
    others: RefCell<HashSet<usize>>,
    /// The first failure, and a notice of it.
    failure: RefCell<Option<JoinError>>,
    failed: Notify,
}

impl Met {
    /// Notes how the meeting with a process has ended.
    fn note(&self, rank: usize, met: Result<(Queues, RemoteMemory), JoinError>) {
        match met {
            Ok(pair) => drop(self.pairs.borrow_mut().insert(rank, pair)),
            Err(why) => {
                self.others.borrow_mut().insert(rank);
                self.failure.borrow_mut().get_or_insert(why);
                self.failed.notify_one();
            }
        }
    }

    fn knows(&self, rank: usize) -> bool {
        self.pairs.borrow().contains_key(&rank) || self.others.borrow().contains(&rank)
    }
}

/// How long a process that has found another one not to be of its world still meets the rest: they
/// are to learn of that one, too, rather than to miss this process. A process that asked before
/// this one was there asks again after a second.
const PARTING: Duration = Duration::from_millis(2500);

/// The most one-sided requests under way between two threads that share their heaps.
const FEW_REQUESTS: usize = 16;

/// How long the address of a process is looked up to find out whether somebody without the key is
/// there. Other processes that ask meanwhile wait, so whoever takes longer is not believed.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How long the numbers of a connection that is over rest at the most.
const REST: Duration = Duration::from_secs(1);

/// How long a process that waits for queues pauses between two attempts to make them.
const PAUSE: Duration = Duration::from_millis(20);

impl Joining<'_> {
    /// Connects a queue pair with each other process: this process asks the processes of lower
    /// rank, and the processes of higher rank ask this one.
    pub(super) async fn pairs(
        &self,
        listeners: Vec<Listener>,
    ) -> Result<HashMap<usize, Pair>, JoinError> {
        let met = &Met::default();
        let below = join_all((0..self.rank).map(|rank| async move {
            met.note(rank, self.ask(rank).await);
        }));
        let above = listeners.into_iter().enumerate();
        let above = join_all(above.map(|(nic, listener)| self.answer(nic, listener, met)));
        let all = async { tokio::join!(below, above) };
        let parts = async {
            met.failed.notified().await;
            sleep(PARTING).await;
        };
        tokio::select! {
            biased;
            _ = all => {}
            () = parts => {}
        }
        if let Some(why) = met.failure.take() {
            return Err(why);
        }
        let opened = met.pairs.take().into_iter().map(|(rank, (queues, heap))| async move {
            let (memory, mapped) = match self.heaps {
                Some(heaps) => (Some(heaps.of(rank).region().clone()), None),
                None => {
                    let mapped = self.map(rank, &queues.connection, heap).await?;
                    (mapped.as_ref().map(|mapped| mapped.region().clone()), mapped)
                }
            };
            Ok((rank, Pair { queues, heap, memory, mapped }))
        });
        Ok(try_join_all(opened).await?.into_iter().collect())
    }

    /// Accepts or refuses the processes that ask this one at one of its NICs, until every process
    /// of higher rank that is reached by that NIC has asked.
    async fn answer(&self, nic: usize, mut listener: Listener, met: &Met) {
        let challenges = Challenges::default();
        let mut above = self.rank + 1..self.size();
        let awaited = |rank: &usize| self.routes[*rank].device == nic && !met.knows(*rank);
        while let Some(missing) = above.clone().find(awaited) {
            above.start = missing;
            let Ok(Ok(incoming)) = timeout_at(self.deadline, listener.accept()).await else {
                let why = self.missing(missing, "it did not come".to_owned());
                return met.note(missing, Err(why));
            };
            match Asked::read(incoming.private()) {
                None => {}
                // It may have gone meanwhile.
                Some(Asked::Knocks(knock)) => {
                    let _ = incoming.reject(&self.challenge(&challenges, knock).to_bytes());
                }
                Some(Asked::OtherKey(rank)) => self.has_other_key(incoming, rank, met).await,
                Some(Asked::Tells(told)) => {
                    self.answer_told(nic, (incoming, told), &challenges, met).await;
                }
            }
        }
    }

    /// The challenge to a process that asks, with a proof that this one knows the key.
    fn challenge(&self, challenges: &Challenges, knock: Knock) -> Challenge {
        let Posed { odd, nonce } = challenges.pose(knock.nonce);
        let ranks = [knock.rank, self.rank as u32];
        let between = Between { ranks, nonces: [knock.nonce, nonce] };
        Challenge { odd, nonce, proof: between.challenged().proven_by(self.config.key) }
    }

    /// Notes that a process is not of this world.
    fn is_stranger(&self, rank: u32, why: &str, met: &Met) {
        tracing::warn!(rank, why, "a process was refused");
        let rank = rank as usize;
        if !met.knows(rank) {
            // Of ranks beyond the world's only that there was one is kept.
            met.note(rank.min(self.size()), Err(self.stranger(rank, why.to_owned())));
        }
    }

    /// Refuses somebody without the key who says that it is the process of a rank. At the address of
    /// that process, it is not of this world. Anywhere else it may be anybody, and the process of
    /// that rank is still waited for.
    async fn has_other_key(&self, incoming: Incoming, rank: u32, met: &Met) {
        let said = rank as usize;
        let there = match self.routes.get(said) {
            Some(route) => {
                let comes_from = timeout(LOOK_UP, incoming.comes_from(&route.address)).await;
                comes_from.is_ok_and(|comes_from| comes_from.unwrap_or(false))
            }
            None => false,
        };
        let _ = incoming.reject(&refusal(DIFFERENT_KEY));
        if there {
            return self.is_stranger(rank, DIFFERENT_KEY, met);
        }
        tracing::warn!(rank, "somebody without the key, who is not at this process's address");
        if said < self.size() {
            self.said_elsewhere.borrow_mut().insert(said);
        }
    }

    /// Accepts or refuses a process that has told about itself. One that does not prove that it
    /// knows the key is told nothing but that.
    async fn answer_told(
        &self,
        nic: usize,
        (incoming, told): (Incoming, Introduction),
        challenges: &Challenges,
        met: &Met,
    ) {
        let (rank, key) = (told.rank as usize, self.config.key);
        let refuse = |incoming: Incoming, why: &str| drop(incoming.reject(&refusal(why)));
        // Without an answer, whoever asked asks for another challenge.
        let Some(nonce) = challenges.posed(told.odd, told.nonce) else { return };
        let ranks = [told.rank, self.rank as u32];
        let between = Between { ranks, nonces: [told.nonce, nonce] };
        let from = incoming.request().qpn;
        if !between.asks(told, from).is_proven(told.proof, key) {
            return self.has_other_key(incoming, told.rank, met).await;
        }
        if !challenges.is_answered_first(told.odd, told.nonce) {
            return;
        }
        let heap = RemoteMemory::from_bytes(between.hide(told.rank, key, told.heap));
        let (own, theirs) = (self.same(), Same { size: told.size, heap: heap.len() });
        if let Some(why) = own.differs(&theirs) {
            refuse(incoming, &theirs.differs(&own).unwrap_or_default());
            return self.is_stranger(told.rank, &why, met);
        }
        if rank <= self.rank || rank >= self.size() || met.knows(rank) {
            return;
        }
        if self.routes[rank].device != nic {
            let why = "it and this process have chosen different devices for each other";
            refuse(incoming, why);
            return met.note(rank, Err(self.stranger(rank, why.to_owned())));
        }
        let Ok(queues) = self.queues(nic).await else {
            let (others, why) = (self.size() - 1, "this NIC has no queue pair left".to_owned());
            return met.note(rank, Err(JoinError::Limit { rank: self.rank, others, why }));
        };
        let answer = self.told(nic, &between, told.odd);
        let proves = between.accepts([told, answer], [from, queues.qpn()]).proven_by(key);
        let answer = Introduction { proof: proves, ..answer }.to_bytes();
        // If this process can't accept, the other one asks again.
        if let Ok((queues, _)) = queues.accept(incoming, &answer).await {
            met.note(rank, Ok((queues, heap)));
        }
    }

    /// Asks a process for a queue pair. Returns the queues, and that process's heap.
    async fn ask(&self, rank: usize) -> Result<(Queues, RemoteMemory), JoinError> {
        self.again(rank, async || {
            let between = self.knock(rank).await?;
            self.tell(rank, between).await
        })
        .await
    }

    /// Asks a process for a challenge, and makes sure that it knows the key.
    async fn knock(&self, rank: usize) -> Result<(Between, bool), Attempt> {
        let knock = Knock { rank: self.rank as u32, nonce: Nonce::draw() };
        let why = match self.connect_to(rank, &knock.to_bytes()).await {
            Ok(_) => return Err(Attempt::Stranger(ANOTHER_VERSION.to_owned())),
            Err(why) => why,
        };
        let ConnectError::Refused { ref private, .. } = why else {
            return Err(Self::unreached(&why));
        };
        let Some(Challenge { odd, nonce, proof }) = Challenge::read(private) else {
            return Err(refused(why));
        };
        let ranks = [knock.rank, rank as u32];
        let between = Between { ranks, nonces: [knock.nonce, nonce] };
        if !between.challenged().is_proven(proof, self.config.key) {
            // So that the other process learns it, too. It learns nothing else.
            let tells = Asked::other_key(knock.rank);
            let _ = timeout_at(self.deadline, self.connect_to(rank, &tells)).await;
            return Err(Attempt::Stranger(DIFFERENT_KEY.to_owned()));
        }
        Ok((between, odd))
    }

    /// Tells a process that knows the key about this one, and connects to it.
    async fn tell(
        &self,
        rank: usize,
        (between, odd): (Between, bool),
    ) -> Result<(Queues, RemoteMemory), Attempt> {
        let Route { device: nic, address, .. } = &self.routes[rank];
        let (key, service) = (self.config.key, ServiceId(self.service(rank, Purpose::OneSided)));
        let queues = self.queues(*nic).await.map_err(|why| Attempt::Limit(with_causes(&why)))?;
        let from = queues.qpn();
        let own = self.told(*nic, &between, odd);
        let own = Introduction { proof: between.asks(own, from).proven_by(key), ..own };
        let connected =
            queues.connect(Name::at(address.as_str(), service.0), &own.to_bytes()).await;
        let (queues, answer) = connected.map_err(refused)?;
        let (told, to) = (Introduction::read(&answer), queues.connection.peer_qpn());
        let Some((told, to)) = told.zip(to) else {
            return Err(Attempt::Stranger(ANOTHER_VERSION.to_owned()));
        };
        if told.rank as usize != rank {
            return Err(Attempt::Stranger(format!("it says that it is process {}", told.rank)));
        }
        if !between.accepts([own, told], [from, to]).is_proven(told.proof, key) {
            return Err(Attempt::Stranger(DIFFERENT_KEY.to_owned()));
        }
        let heap = RemoteMemory::from_bytes(between.hide(told.rank, key, told.heap));
        match self.same().differs(&Same { size: told.size, heap: heap.len() }) {
            None => Ok((queues, heap)),
            Some(why) => Err(Attempt::Stranger(why)),
        }
    }

    /// Connects to the service of a process that takes one-sided requests, with this data.
    async fn connect_to(
        &self,
        rank: usize,
        private: &[u8],
    ) -> Result<(Queues, Private), ConnectError> {
        let Route { device: nic, address, .. } = &self.routes[rank];
        let service = ServiceId(self.service(rank, Purpose::OneSided));
        self.queues(*nic).await?.connect(Name::at(address.as_str(), service.0), private).await
    }

    /// Makes the queues for one-sided requests by a NIC. If the NIC has none left, those of earlier
    /// attempts are waited for, which it keeps while their numbers rest.
    async fn queues(&self, nic: usize) -> Result<Unconnected<Queues>, ResourceError> {
        let port = &self.ports[nic];
        let until = self.deadline.min(Instant::now() + REST);
        loop {
            let made = port.domain.queues(&QueuesConfig {
                // Threads that share their heaps reach them without requests, unless they are told
                // to.
                send_depth: if self.heaps.is_some() { FEW_REQUESTS } else { REQUESTS },
                receive_depth: 1,
                ..QueuesConfig::new(&port.completions.borrow())
            });
            if made.is_ok() || Instant::now() >= until {
                return made;
            }
            sleep(PAUSE).await;
        }
    }

    /// The data about this process that another gets when they connect by one of its NICs, without
    /// a proof.
    fn told(&self, nic: usize, between: &Between, odd: bool) -> Introduction {
        let (rank, Same { size, .. }) = (self.rank as u32, self.same());
        let heap = self.ports[nic].registered.remote().to_bytes();
        let heap = between.hide(rank, self.config.key, heap);
        Introduction { odd, rank, size, heap, nonce: between.nonces[0], proof: Proof::default() }
    }

    /// Returns the properties that all processes of the world must have.
    fn same(&self) -> Same {
        Same { size: self.size() as u32, heap: self.heap.region().len() as u64 }
    }

    /// Maps the heap of another process, and grants it the mapping of this process's heap; `None`
    /// if the device maps no memory.
    async fn map(
        &self,
        rank: usize,
        connection: &Connection,
        heap: RemoteMemory,
    ) -> Result<Option<Mapped>, JoinError> {
        let port = self.port(rank);
        if !port.nic.capabilities().mapping {
            return Ok(None);
        }
        let failed = |why: &(dyn Error + 'static)| {
            self.lost(rank, format!("the two can't map each other's memory: {}", with_causes(why)))
        };
        connection.grant(&port.registered).map_err(|why| failed(&why))?;
        match timeout_at(self.deadline, connection.map(heap)).await {
            Ok(Ok(mapped)) => {
                let (len, all) = (mapped.region().len() as u64, heap.len());
                if len != all {
                    let why = format!("it granted {len} bytes of its heap of {all}");
                    return Err(self.stranger(rank, why));
                }
                Ok(Some(mapped))
            }
            Ok(Err(why)) => Err(failed(&why)),
            Err(_) => Err(self.missing(rank, "it did not grant its memory".to_owned())),
        }
    }
}

/// The data of a refusal, which says why a process was refused.
fn refusal(why: &str) -> Vec<u8> {
    [&MAGIC[..], why.as_bytes()].concat()
}

/// Why this process was refused, if the data of the refusal says so.
fn refused(why: ConnectError) -> Attempt {
    let text = match &why {
        ConnectError::Refused { private, .. } => private.strip_prefix(&MAGIC),
        _ => None,
    };
    match text.and_then(|text| std::str::from_utf8(text).ok()) {
        // The data of a refusal has zeros behind it.
        Some(text) => Attempt::Stranger(text.trim_end_matches('\0').to_owned()),
        None => Joining::unreached(&why),
    }
}

/// Why a process is a stranger whose answers are not those of this version.
const ANOTHER_VERSION: &str = "it has another version of this library";
