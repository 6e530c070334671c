//! The bodies that are on their way, in either direction, and the messages about them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Handlers, Peer};
use doorbell_verbs::floor::locked;
use doorbell_verbs::{Registered, RemoteMemory};
use tokio::sync::oneshot;

use super::connection::BulkConnection;
use super::notice::Unwritten;
use super::pool::{Lent, Pool, Share};
use super::time_for;
use crate::meters;
use crate::owed::Owed;
use crate::status::Status;
use crate::wire::{CallKey, LEND, WRITTEN};

/// The bodies that this end is sending and receiving.
#[derive(Debug)]
pub struct Transfers {
    table: Mutex<Table>,
    /// Words about bodies that are not written, which wait for their receivers' credits.
    owed: Arc<Owed<Unwritten>>,
    pool: Pool,
    longest: usize,
}

#[derive(Debug, Default)]
struct Table {
    /// Bodies that this end has offered, and for which the receiver has not lent memory yet.
    out: HashMap<CallKey, (Peer, oneshot::Sender<RemoteMemory>)>,
    /// Bodies for which this end has lent memory, and which are not complete yet.
    coming: HashMap<CallKey, (Peer, oneshot::Sender<bool>)>,
}

/// A body that is longer than this end accepts.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    pub len: u64,
    pub longest: usize,
}

impl Refused {
    pub fn status(self, what: &str) -> Status {
        let Self { len, longest } = self;
        Status::resource_exhausted(format!(
            "{what} has {len} bytes, and at most {longest} are taken: raise `longest_body`, or send a \
             stream"
        ))
    }
}

impl Transfers {
    /// Makes an empty table, for bodies of at most `longest` bytes each and `memory` bytes
    /// together. A body that finds no memory is refused when none has come back for `patience`.
    pub fn new(longest: usize, memory: usize, patience: Duration) -> Arc<Self> {
        let (table, owed) = (Mutex::default(), Arc::default());
        Arc::new(Self { table, owed, pool: Pool::new(memory, patience), longest })
    }

    /// Adds the handlers of the messages about bodies to those of an endpoint.
    pub fn add_handlers(self: &Arc<Self>, handlers: Handlers) -> Handlers {
        let [lent, written] = [self.clone(), self.clone()];
        handlers
            .request(LEND, move |request, [session, call]| {
                let (key, peer) = ((session, call), request.peer());
                let Some(memory) = RemoteMemory::from_prefix(request.payload()) else { return };
                let body = take(&mut locked(&lent.table).out, key, &peer);
                // A body that was given up is not written; the receiver must be told so.
                let taken = body.is_some_and(|body| body.send(memory).is_ok());
                if !taken {
                    lent.is_not_written(&peer, key);
                }
                request.note_woken();
            })
            .request(WRITTEN, move |request, [session, call, whole]| {
                let body =
                    take(&mut locked(&written.table).coming, (session, call), &request.peer());
                if let Some(body) = body {
                    let _ = body.send(whole == 1);
                    request.note_woken();
                }
            })
    }

    /// Tells the receiver of a body, which has lent memory for it, that the body is not written.
    pub fn is_not_written(&self, peer: &Peer, key: CallKey) {
        self.owed.put(peer, Unwritten(key));
    }

    /// The share of the memory for one peer of an end that has many peers.
    pub fn share(&self) -> Share {
        self.pool.half(self.longest)
    }

    /// The share of the memory for the only peer of an end.
    pub fn whole(&self) -> Share {
        self.pool.whole()
    }

    /// The number of bodies that are on their way, and the number of bytes that are lent for
    /// bodies, held by bodies that count, or reserved for messages of streams.
    pub fn usage(&self) -> (usize, usize) {
        let table = locked(&self.table);
        (table.out.len() + table.coming.len(), self.pool.used())
    }

    /// Checks whether this end accepts a body of `len` bytes.
    ///
    /// # Errors
    /// When the body is longer than this end accepts.
    pub fn check(&self, len: u64) -> Result<usize, Refused> {
        let longest = self.longest;
        let fits = usize::try_from(len).ok().filter(|&len| len <= longest);
        fits.ok_or(Refused { len, longest })
    }

    /// Enters a body that waits for memory. The returned receiver yields the memory that the other
    /// end lends for it.
    pub fn offer(&self, key: CallKey, peer: &Peer) -> oneshot::Receiver<RemoteMemory> {
        let (lends, lent) = oneshot::channel();
        locked(&self.table).out.insert(key, (peer.clone(), lends));
        lent
    }

    /// Removes a body that waits for memory. Returns whether it still waited.
    pub fn withdraw(&self, key: CallKey, peer: &Peer) -> bool {
        take(&mut locked(&self.table).out, key, peer).is_some()
    }

    /// Receives a body over a bulk connection: registers memory, tells the sender where to write,
    /// and waits until the body is written.
    ///
    /// If this is dropped after that, the memory stays registered until the sender has said that it
    /// writes no more. A write into memory that is not registered any more would break the
    /// connection, and with it the transfers of other bodies.
    ///
    /// # Errors
    /// When the sender goes away, gives the body up, or does not write it [in time](time_for).
    pub async fn receive(
        self: &Arc<Self>,
        key: CallKey,
        peer: &Peer,
        connection: &BulkConnection,
        lent: Lent,
    ) -> Result<Bytes, Status> {
        let len = lent.len();
        let registered = connection.lend(lent.region())?;
        let receives = self.clone().receive_into(lent, registered, (key, peer.clone()), len);
        let received = peer.runtime().spawn(receives).await;
        received.unwrap_or_else(|why| {
            Err(Status::unavailable(format!("receiving a body of {len} bytes: {why}")))
        })
    }

    async fn receive_into(
        self: Arc<Self>,
        lent: Lent,
        registered: Registered,
        (key, peer): (CallKey, Peer),
        len: usize,
    ) -> Result<Bytes, Status> {
        let (writes, written) = oneshot::channel();
        locked(&self.table).coming.insert(key, (peer.clone(), writes));
        let _forgets = Forgets(&self, key, &peer);
        let gone = |why: &dyn std::fmt::Display| {
            Status::unavailable(format!("receiving a body of {len} bytes: {why}"))
        };
        let (session, call) = key;
        let memory = registered.remote().to_bytes();
        let asked = peer.request_with(LEND, [session, call], memory).await;
        asked.map_err(|why| gone(&why))?;
        let time = time_for(len);
        match tokio::time::timeout(time, written).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Err(gone(&"its sender has given it up")),
            Ok(Err(_)) => return Err(gone(&"the connection has ended")),
            Err(_) => {
                return Err(gone(&format_args!(
                    "its sender has not written it in the {time:?} for which memory is lent to it"
                )));
            }
        }
        meters::body_received(len);
        // From here on nobody can write into the memory any more.
        let region = registered.revoke_now().map_err(|why| gone(&why))?;
        drop(region);
        lent.into_bytes().ok_or_else(|| gone(&"its memory is still in use"))
    }

    /// Ends all transfers with peers that have gone.
    pub fn end_all_of(&self, is_gone: impl Fn(&Peer) -> bool) {
        let mut table = locked(&self.table);
        table.out.retain(|_, (of, _)| !is_gone(of));
        table.coming.retain(|_, (of, _)| !is_gone(of));
    }

    /// Ends all transfers, because this endpoint is over.
    pub fn end_all(&self) {
        let table = std::mem::take(&mut *locked(&self.table));
        drop(table);
    }
}

/// Removes a body that is received from the table when dropped.
struct Forgets<'t>(&'t Transfers, CallKey, &'t Peer);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        let Self(transfers, key, peer) = self;
        take(&mut locked(&transfers.table).coming, *key, peer);
    }
}

/// Takes the entry of a body out of a table, if it is about the connection to `peer`. If the call
/// was sent again over another connection, the entry belongs to the later call, and stays.
fn take<T>(table: &mut HashMap<CallKey, (Peer, T)>, key: CallKey, peer: &Peer) -> Option<T> {
    table.get(&key).filter(|(of, _)| of == peer)?;
    table.remove(&key).map(|(_, body)| body)
}
