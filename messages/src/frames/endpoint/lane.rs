//! Lanes: connections by which frames are placed in the receives of peers, by RDMA writes.
//!
//! Each side makes its own lane when it first sends to a peer, and until it is made, frames go as
//! datagrams.

use std::sync::{Arc, Weak};

use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{
    Buf, Connection, Incoming, Listener, Queues, QueuesConfig, RemoteMemory, Unconnected,
};
use tokio::sync::Notify;

use super::name::Name;
use super::shared::Shared;
use crate::frames::policy::Offload;
use crate::frames::wire::{FRAME_HEADER, Head};

/// The writes and notices that may wait in a lane.
const DEPTH: usize = 256;
/// As many as a burst can have: two windows of frames, and a notice.
const BURST: usize = 2 * 32 + 1;
/// The receives for a peer's notices.
const NOTICES: usize = 128;

/// The lane to a peer.
#[derive(Debug, Default)]
pub struct Lane {
    state: Made,
    /// Tells when the lane is made, or can't be.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
enum Made {
    #[default]
    Not,
    UnderWay,
    Done {
        queues: Queues,
        identity: u64,
    },
    Failed,
}

/// A peer's lane to this side.
#[derive(Debug)]
pub struct Accepted {
    pub identity: u64,
    /// The queues, once this side knows that the connection is made. Notices may come before.
    pub queues: Option<Queues>,
}

impl Accepted {
    /// Posts receives for notices, as many as there is room for.
    pub fn fill(&mut self) {
        let Some(queues) = &mut self.queues else { return };
        while queues.receive.room() > 0 {
            if queues.receive.post(0, Buf::with_capacity(2 * FRAME_HEADER)).is_err() {
                return;
            }
        }
    }
}

impl Lane {
    /// Makes the lane, unless it is made or was tried.
    pub fn connect(&mut self, shared: &Weak<Shared>, to: &Name) {
        if !matches!(self.state, Made::Not) {
            return;
        }
        let Some(shared) = shared.upgrade() else { return };
        self.state = Made::UnderWay;
        let (runtime, to) = (shared.runtime.clone(), to.clone());
        runtime.spawn(make(Arc::downgrade(&shared), to));
    }

    /// Whether a burst has room.
    pub fn has_room(&self) -> bool {
        match &self.state {
            Made::Done { queues, .. } => queues.send.room() >= BURST,
            _ => true,
        }
    }

    /// Places frames, and tells the peer behind them.
    pub fn place(
        &mut self,
        (memory, data, stride): (RemoteMemory, &[u8], u16),
        notice: &Head,
        offload: Offload,
    ) {
        let Made::Done { queues, identity } = &mut self.state else { return };
        let stride = match offload {
            Offload::Both => data.len(),
            _ => stride.into(),
        };
        let mut at = 0;
        for part in data.chunks(stride.max(1)) {
            let place = memory.at(at, part.len() as u64);
            let write = place.ok().and_then(|place| Write::new(part.to_vec(), place).ok());
            let Some(write) = write else { return };
            if queues.send.put(write.unsignalled()).is_err() {
                return;
            }
            at += part.len() as u64;
        }
        let mut bytes = Vec::with_capacity(FRAME_HEADER);
        notice.encode(*identity, None, &mut bytes);
        if let Ok(send) = Send::inline(&bytes) {
            // A lane that has ended is noticed by its watch.
            let _ = queues.send.post(send);
        }
    }
}

fn config(config: &QueuesConfig) -> QueuesConfig {
    QueuesConfig { send_depth: DEPTH, receive_depth: NOTICES, ..config.clone() }
}

/// Waits until the lane to a peer is made. Returns whether it is.
pub async fn connected(shared: &Arc<Shared>, to: &Name) -> bool {
    loop {
        let changed = {
            let mut state = shared.lock();
            if state.settings.policy.offload() == Offload::None {
                return false;
            }
            let Some(lane) = state.lane(to.identity()) else { return false };
            lane.connect(&Arc::downgrade(shared), to);
            match lane.state {
                Made::Done { .. } => return true,
                Made::Failed => return false,
                _ => lane.changed.clone().notified_owned(),
            }
        };
        changed.await;
    }
}

/// Makes the lane to a peer, and watches it.
async fn make(shared: Weak<Shared>, to: Name) {
    let Some(strong) = shared.upgrade() else { return };
    let (domain, queues) = &strong.lanes;
    let own = strong.name.identity();
    let made = async {
        let unconnected = domain.queues(&config(queues)).map_err(|why| why.to_string())?;
        let (queues, _) = unconnected
            .connect(to.address(), to.service(), &own.to_be_bytes())
            .await
            .map_err(|why| why.to_string())?;
        Ok::<_, String>(queues)
    };
    let made = made.await;
    let connection = set(&strong, &to, made);
    strong.stir();
    drop(strong);
    let Some(connection) = connection else { return };
    connection.ended().await;
    let Some(shared) = shared.upgrade() else { return };
    let mut state = shared.lock();
    state.lanes.remove(&connection.qpn().get());
    state.set_places(to.identity(), false);
    if let Some(lane) = state.lane(to.identity()) {
        lane.state = Made::Not;
    }
    shared.send(state);
}

/// Puts a lane in its place. Returns its connection if there is one.
fn set(shared: &Shared, to: &Name, made: Result<Queues, String>) -> Option<Connection> {
    let own = shared.name.identity();
    let mut state = shared.lock();
    let lane = state.lane(to.identity())?;
    let changed = lane.changed.clone();
    let connection = match made {
        Ok(queues) => {
            let connection = queues.connection.clone();
            lane.state = Made::Done { queues, identity: own };
            state.lanes.insert(connection.qpn().get(), to.identity());
            state.set_places(to.identity(), true);
            Some(connection)
        }
        Err(why) => {
            tracing::debug!(peer = %to, why, "frames can't be placed, and go as datagrams");
            lane.state = Made::Failed;
            None
        }
    };
    changed.notify_waiters();
    connection
}

/// Takes peers' lanes.
pub async fn accept(shared: Weak<Shared>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        let Some(strong) = shared.upgrade() else { return };
        let has_room = {
            let state = strong.lock();
            state.accepted.len() < state.settings.most_peers
        };
        if has_room {
            strong.runtime.spawn(take(shared.clone(), incoming));
        }
    }
}

/// Takes a peer's lane, and watches it.
async fn take(shared: Weak<Shared>, incoming: Incoming) {
    let Some(strong) = shared.upgrade() else { return };
    let Some(identity) = incoming.private().first_chunk().copied() else { return };
    let identity = u64::from_be_bytes(identity);
    let (domain, queues) = &strong.lanes;
    let Ok(mut unconnected) = domain.queues(&config(queues)) else { return };
    fill(&mut unconnected);
    let qpn = unconnected.qpn().get();
    strong.lock().accepted.insert(qpn, Accepted { identity, queues: None });
    let accepted = unconnected.accept(incoming, &[]).await;
    let Ok((queues, _)) = accepted else {
        strong.lock().accepted.remove(&qpn);
        return;
    };
    let connection = queues.connection.clone();
    if let Some(accepted) = strong.lock().accepted.get_mut(&qpn) {
        accepted.queues = Some(queues);
        accepted.fill();
    }
    drop(strong);
    connection.ended().await;
    if let Some(shared) = shared.upgrade() {
        let gone = shared.lock().accepted.remove(&qpn);
        drop(gone);
    }
}

fn fill(unconnected: &mut Unconnected<Queues>) {
    for _ in 0..NOTICES {
        let posted = unconnected.post_receive(0, Buf::with_capacity(2 * FRAME_HEADER));
        debug_assert!(posted.is_ok(), "there is room for as many");
    }
}
