//! Bodies that are on their way, and what their ends say to each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use doorbell_am::{Handlers, Peer};
use doorbell_verbs::{Registered, RemoteMemory};
use tokio::sync::oneshot;

use super::line::Line;
use super::pool::{Lent, Pool, Share};
use super::time_for;
use super::word::tell_written;
use crate::meters;
use crate::status::Status;
use crate::stream::Key;
use crate::wire::{LEND, WRITTEN};

/// The bodies of calls that are on their way to this end, and from here.
#[derive(Debug)]
pub struct Transfers {
    table: Mutex<Table>,
    pool: Pool,
    longest: usize,
}

#[derive(Debug, Default)]
struct Table {
    /// Bodies that wait until the other end lends memory.
    out: HashMap<Key, (Peer, oneshot::Sender<RemoteMemory>)>,
    /// Bodies that are being written here.
    coming: HashMap<Key, (Peer, oneshot::Sender<bool>)>,
}

/// A body that is longer than this end takes.
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
    /// No bodies yet, of at most `longest` bytes each and `memory` bytes together.
    pub fn new(longest: usize, memory: usize) -> Arc<Self> {
        Arc::new(Self { table: Mutex::default(), pool: Pool::new(memory), longest })
    }

    /// Adds the messages about bodies to an endpoint's.
    pub fn add_handlers(self: &Arc<Self>, handlers: Handlers) -> Handlers {
        let [lent, written] = [self.clone(), self.clone()];
        handlers
            .request(LEND, move |request, [session, call]| {
                let (key, peer) = ((session, call), request.peer());
                let Some(memory) = RemoteMemory::from_prefix(request.payload()) else { return };
                let body = take(&mut lent.lock().out, key, &peer);
                // A body that was given up is not written, which its receiver is to know.
                let taken = body.is_some_and(|body| body.send(memory).is_ok());
                if !taken {
                    tell_written(&peer, key, false);
                }
                request.note_woken();
            })
            .request(WRITTEN, move |request, [session, call, whole]| {
                if let Some((_, body)) = written.lock().coming.remove(&(session, call)) {
                    let _ = body.send(whole == 1);
                    request.note_woken();
                }
            })
    }

    /// Memory for what the peers of an end with many of them send: half of all for each.
    pub fn share(&self) -> Share {
        self.pool.half(self.longest)
    }

    /// Memory for what the only peer of an end sends.
    pub fn whole(&self) -> Share {
        self.pool.whole()
    }

    /// How many bodies are on their way, and how many bytes are lent for bodies, held by them, or
    /// reserved for messages of streams.
    pub fn usage(&self) -> (usize, usize) {
        let table = self.lock();
        (table.out.len() + table.coming.len(), self.pool.used())
    }

    /// Whether a body of a length is taken.
    ///
    /// # Errors
    /// When it is too long.
    pub fn check(&self, len: u64) -> Result<usize, Refused> {
        let longest = self.longest;
        let fits = usize::try_from(len).ok().filter(|&len| len <= longest);
        fits.ok_or(Refused { len, longest })
    }

    /// Has a body wait for memory. Returns what the memory comes by that the other end lends.
    pub fn offer(&self, key: Key, peer: &Peer) -> oneshot::Receiver<RemoteMemory> {
        let (lends, lent) = oneshot::channel();
        self.lock().out.insert(key, (peer.clone(), lends));
        lent
    }

    /// Takes a body off the table that waits for memory. Returns whether it still did.
    pub fn withdraw(&self, key: Key, peer: &Peer) -> bool {
        take(&mut self.lock().out, key, peer).is_some()
    }

    /// Receives a body over a line: lends memory, and waits until it is written.
    ///
    /// If this is dropped after the memory was lent, the memory stays lent until the sender has
    /// said that nothing writes there any more. A write into memory that was taken back would end
    /// the line, and with it the other bodies that are on their way.
    ///
    /// # Errors
    /// When the other end goes, gives the body up, or does not write it [in time](time_for).
    pub async fn receive(
        self: &Arc<Self>,
        key: Key,
        peer: &Peer,
        line: &Line,
        lent: Lent,
    ) -> Result<Bytes, Status> {
        let len = lent.len();
        let registered = line.lend(lent.region())?;
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
        (key, peer): (Key, Peer),
        len: usize,
    ) -> Result<Bytes, Status> {
        let (writes, written) = oneshot::channel();
        self.lock().coming.insert(key, (peer.clone(), writes));
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
        // From here on nobody can write there any more.
        let region = registered.revoke_now().map_err(|why| gone(&why))?;
        drop(region);
        lent.into_bytes().ok_or_else(|| gone(&"its memory is still in use"))
    }

    /// Ends all transfers with peers that have gone.
    pub fn end_all_of(&self, is_gone: impl Fn(&Peer) -> bool) {
        let mut table = self.lock();
        table.out.retain(|_, (of, _)| !is_gone(of));
        table.coming.retain(|_, (of, _)| !is_gone(of));
    }

    /// Ends all transfers, because this end of all connections is over.
    pub fn end_all(&self) {
        let table = std::mem::take(&mut *self.lock());
        drop(table);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a body that is received off the table.
struct Forgets<'t>(&'t Transfers, Key, &'t Peer);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        let Self(transfers, key, peer) = self;
        take(&mut transfers.lock().coming, *key, peer);
    }
}

/// Takes a body off a table, unless the call was sent again over another connection than that to
/// `peer`: the body is that of the later call then.
fn take<T>(table: &mut HashMap<Key, (Peer, T)>, key: Key, peer: &Peer) -> Option<T> {
    table.get(&key).filter(|(of, _)| of == peer)?;
    table.remove(&key).map(|(_, body)| body)
}
