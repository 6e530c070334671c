//! Joining from end to end: NICs are opened, all processes connect, and the world is made.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use doorbell_am as am;
use doorbell_job::Route;
use doorbell_verbs::{Nic, Progress, Queues, ServiceId};
use futures_util::future::try_join_all;
use slab::Slab;

use super::joining::{Joining, Kin, Purpose, nic_config};
use super::membership::{JoinError, Membership};
use super::messages::PAYLOAD;
use super::pairs::Pair;
use super::watch::watch;
use crate::config::{Carrier, Config};
use crate::departures::Departures;
use crate::messages::Outbox;
use crate::peers::{Far, Peer};
use crate::world::keeper::Keeper;
use crate::world::{Core, World};

impl World {
    /// Makes this process part of a world: opens its NIC, and connects to all other processes. The
    /// processes may start in any order.
    ///
    /// [`Job`](crate::Job) joins for whole programs. A program that has a runtime of its own may
    /// await `join` there; the world stays on the thread that has joined it.
    ///
    /// # Errors
    /// When the device can't be opened, or another process can't be connected to in
    /// [time](Config::start), or is of another world; and when an address is not of this host, and
    /// the world has no [key](Config::key).
    pub async fn join(membership: &Membership, config: &Config) -> Result<Self, JoinError> {
        let Membership { rank, addresses, device } = membership;
        let own = addresses.get(*rank).ok_or_else(|| {
            let size = addresses.len();
            JoinError::Config(format!("rank {rank} is not among {size} addresses"))
        })?;
        let device = device.as_ref().unwrap_or(own);
        let nic = Nic::builder().config(nic_config(config, addresses.len())).open(device).await;
        let nic = nic.map_err(|why| JoinError::Device {
            rank: *rank,
            device: device.clone(),
            why: Box::new(why),
        })?;
        Self::join_on(&nic, *rank, addresses, config).await
    }

    /// Makes this process part of a world through a NIC that is open already, such as one of a
    /// simulated network.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub async fn join_on(
        nic: &Nic,
        rank: usize,
        addresses: &[String],
        config: &Config,
    ) -> Result<Self, JoinError> {
        let all = addresses.iter();
        let routes: Vec<_> = all.map(|address| Route::by_first(address.as_str())).collect();
        Self::join_by(std::slice::from_ref(nic), &routes, rank, config).await
    }

    /// Makes this process part of a world whose processes it reaches by several NICs: each process
    /// by one of them, as `routes` say in the order of ranks. The two processes of a pair must use
    /// the same kind of device for each other.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub async fn join_by(
        nics: &[Nic],
        routes: &[Route],
        rank: usize,
        config: &Config,
    ) -> Result<Self, JoinError> {
        Self::join_kin(nics, routes, rank, (config, Kin::default())).await
    }

    /// Makes this process part of a world of whose processes more is known than their addresses.
    pub(crate) async fn join_kin(
        nics: &[Nic],
        routes: &[Route],
        rank: usize,
        (config, kin): (&Config, Kin<'_>),
    ) -> Result<Self, JoinError> {
        Joining::new(nics, routes, rank, (config, kin))?.join().await
    }
}

impl Joining<'_> {
    async fn join(self) -> Result<World, JoinError> {
        let (mut listeners, mut endpoints) = (Vec::new(), Vec::new());
        for port in &self.ports {
            let listener =
                port.nic.listen(ServiceId(self.service(self.rank, Purpose::OneSided))).await;
            listeners.push(listener.map_err(|why| self.device(port, why.into()))?);
            endpoints.push(self.endpoint(port).await?);
        }
        let group = self.group().await?;
        let (messages, mut pairs) = tokio::try_join!(
            try_join_all(self.others().map(|rank| self.connect(&endpoints, rank))),
            self.pairs(listeners)
        )?;
        // Behind this barrier each process has connections of the group, by which it learns of the
        // end of any other process, even before the first collective of the program.
        let met = group.barrier().await;
        met.map_err(|why| match why.gone() {
            Some(rank) => self.lost(rank, crate::group_errors::in_words(&why)),
            None => self.device(&self.ports[0], why.into()),
        })?;
        let mut messages: HashMap<_, _> = self.others().zip(messages).collect();
        let departures = Arc::new(Departures::new(self.size()));
        let watches = endpoints.iter().map(|endpoint| {
            tokio::spawn(watch(endpoint, &messages, departures.clone())).abort_handle()
        });
        let watches = watches.collect();
        let mut peers = Vec::new();
        for rank in 0..self.size() {
            let far = messages.remove(&rank).zip(pairs.remove(&rank));
            peers.push(self.peer(rank, far)?);
        }
        let keeper = self.keeper()?;
        let Self { rank, ports, heap, served, .. } = self;
        let world = World(Rc::new(Core {
            rank,
            bundle: ports[0].bundle.clone(),
            ports: ports.into(),
            _endpoints: endpoints,
            group,
            heap,
            peers: peers.into(),
            served,
            departures,
            flights: RefCell::new(Slab::new()),
            outstanding: Cell::new(0),
            slots: RefCell::new(Slab::new()),
            dirty: RefCell::default(),
            failure: RefCell::new(None),
            consumed: Cell::new(0),
            deferred: RefCell::default(),
            counted: Cell::new(0),
            breathed: Cell::new(0),
            amid: Cell::new(0),
            in_condition: Cell::new(false),
            turn: Cell::new(0),
            functions: RefCell::default(),
            stall: self.config.stall,
            watches,
            _keeper: keeper,
        }));
        Ok(world)
    }

    /// Starts the thread that answers for this process while it computes, where a device can't tell
    /// a process that computes from one that has died, and no other thread answers.
    fn keeper(&self) -> Result<Option<Keeper>, JoinError> {
        let lossy = self.ports.iter().find(|port| !port.nic.capabilities().lossless);
        let Some(port) = lossy else { return Ok(None) };
        if self.size() == 1 || self.config.progress != Progress::Inline {
            return Ok(None);
        }
        let keeper = Keeper::start(&port.bundle, self.config.patience);
        keeper.map(Some).map_err(|why| self.device(port, why.into()))
    }

    fn peer(&self, rank: usize, far: Option<(am::Peer, Pair)>) -> Result<Peer, JoinError> {
        let Some((messages, Pair { queues, heap, memory, mapped })) = far else {
            return Ok(Peer {
                rank,
                carrier: Cell::new(Carrier::Mapped),
                memory: Some(self.heap.region().clone()),
                far: None,
                untold: Cell::new(0),
                dirty: Cell::new(false),
            });
        };
        let default = if memory.is_some() { Carrier::Mapped } else { Carrier::Mixed };
        let carrier = self.config.carrier.unwrap_or(default);
        if carrier == Carrier::Mapped && memory.is_none() {
            let why = "the device does not map memory of other processes: shm does";
            let kind = crate::ErrorKind::NoCarrier { rank, carrier, why };
            return Err(JoinError::Carrier(kind.into()));
        }
        let longest = messages.longest_payload().min(PAYLOAD);
        let Queues { send, receive, connection } = queues;
        Ok(Peer {
            rank,
            carrier: Cell::new(carrier),
            memory,
            far: Some(Far {
                messages,
                outbox: RefCell::new(Outbox::new(longest)),
                pending: RefCell::default(),
                sent: Cell::new(0),
                answered: Cell::new(0),
                unconfirmed: Cell::new(false),
                requests: RefCell::new(send),
                _receives: receive,
                connection,
                port: self.routes[rank].device,
                address: self.routes[rank].address.clone(),
                heap,
                _mapped: mapped,
            }),
            untold: Cell::new(0),
            dirty: Cell::new(false),
        })
    }
}
