//! Tasks that make lanes, take those of peers, and watch them.
//!
//! Each side makes its own lane when it first sends to a peer, and until it is made, frames go as
//! datagrams.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::{
    ConnectError, Connection, Incoming, Listener, Name, Queues, QueuesConfig, Unconnected,
};
use tokio::time::{Instant, sleep};

use super::lane::{Accepted, DEPTH};
use super::shared::Shared;
use crate::frames::name::identity;

/// How long a peer whose port is closed is asked again for a lane: its program may be about to
/// start.
const STARTS_WITHIN: Duration = Duration::from_secs(4);

/// The pause between two such attempts.
const PAUSE: Duration = Duration::from_millis(50);

fn config(config: &QueuesConfig) -> QueuesConfig {
    QueuesConfig { send_depth: DEPTH, ..config.clone() }
}

/// Makes the lane to a peer, and watches it.
pub async fn make(shared: Weak<Shared>, to: Name) {
    let Some(strong) = shared.upgrade() else { return };
    let (domain, queues) = &strong.lanes;
    let own = identity(&strong.name);
    let until = Instant::now() + STARTS_WITHIN;
    let made = loop {
        let made = async {
            let unconnected = domain.queues(&config(queues))?;
            unconnected.connect(&to, &own.to_be_bytes()).await
        };
        match made.await {
            Err(ConnectError::PortClosed { .. }) if Instant::now() < until => sleep(PAUSE).await,
            made => break made.map(|(queues, _)| queues).map_err(|why| why.to_string()),
        }
    };
    let connection = set(&strong, &to, made);
    strong.stir();
    drop(strong);
    let Some(connection) = connection else { return };
    connection.ended().await;
    let Some(shared) = shared.upgrade() else { return };
    let mut state = shared.lock();
    state.lane_ended(connection.qpn().get());
    shared.send(state);
}

/// Puts a lane in its place. Returns its connection if there is one.
fn set(shared: &Shared, to: &Name, made: Result<Queues, String>) -> Option<Connection> {
    let own = identity(&shared.name);
    let mut state = shared.lock();
    let lane = state.lane(identity(to))?;
    match made {
        Ok(queues) => {
            let connection = queues.connection.clone();
            lane.made(queues, own);
            state.lanes.insert(connection.qpn().get(), identity(to));
            state.set_places(identity(to), true);
            Some(connection)
        }
        Err(why) => {
            tracing::debug!(peer = %to, why, "frames can't be placed, and go as datagrams");
            lane.failed();
            None
        }
    }
}

/// Accepts the lanes that peers make to this endpoint, as long as there are fewer than the endpoint
/// may have peers. Further ones are refused.
pub async fn accept(shared: Weak<Shared>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        let Some(strong) = shared.upgrade() else { return };
        let Ok(incoming) = incoming else {
            // The NIC is closed, and the endpoint with it.
            strong.lock().loses_nic();
            strong.is_closing.store(true, Ordering::SeqCst);
            return strong.stir();
        };
        let has_room = {
            let state = strong.lock();
            state.accepted.len() < state.settings.most_peers
        };
        if !has_room {
            continue;
        }
        if let Some(prepared) = prepare(&strong, &incoming) {
            strong.runtime.spawn(take(shared.clone(), incoming, prepared));
        }
    }
}

/// Makes the queues of a lane that a peer asks for, and takes its place among those of all peers.
fn prepare(shared: &Shared, incoming: &Incoming) -> Option<Unconnected<Queues>> {
    let identity = u64::from_be_bytes(*incoming.private().first_chunk()?);
    let (domain, queues) = &shared.lanes;
    let unconnected = domain.queues(&config(queues)).ok()?;
    let qpn = unconnected.qpn().get();
    shared.lock().accepted.insert(qpn, Accepted { identity, queues: None });
    Some(unconnected)
}

/// Takes a peer's lane, and watches it.
async fn take(shared: Weak<Shared>, incoming: Incoming, unconnected: Unconnected<Queues>) {
    let Some(strong) = shared.upgrade() else { return };
    let qpn = unconnected.qpn().get();
    let accepted = unconnected.accept(incoming, &[]).await;
    let Ok((queues, _)) = accepted else {
        strong.lock().accepted.remove(&qpn);
        return;
    };
    let connection = queues.connection.clone();
    if let Some(accepted) = strong.lock().accepted.get_mut(&qpn) {
        accepted.queues = Some(queues);
    }
    drop(strong);
    connection.ended().await;
    if let Some(shared) = shared.upgrade() {
        let gone = shared.lock().accepted.remove(&qpn);
        drop(gone);
    }
}
