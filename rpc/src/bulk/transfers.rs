//! Bodies that are on their way, and what their ends say to each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use doorbell_am::{Handlers, Peer};
use doorbell_verbs::RemoteMemory;
use tokio::sync::oneshot;

use super::line::Line;
use super::pool::Pool;
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
                let memory = RemoteMemory::from_prefix(request.payload());
                let body = lent.lock().out.remove(&(session, call));
                if let (Some((_, body)), Some(memory)) = (body, memory) {
                    let _ = body.send(memory);
                    request.note_woken();
                }
            })
            .request(WRITTEN, move |request, [session, call, whole]| {
                if let Some((_, body)) = written.lock().coming.remove(&(session, call)) {
                    let _ = body.send(whole == 1);
                    request.note_woken();
                }
            })
    }

    /// How many bodies are on their way, and how many bytes are lent for bodies or held by them.
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

    /// Prepares a body to be sent: the other end may lend memory for it from now on.
    pub fn offer(self: &Arc<Self>, key: Key, peer: &Peer, body: Bytes) -> Offered {
        let (lends, lent) = oneshot::channel();
        self.lock().out.insert(key, (peer.clone(), lends));
        Offered { transfers: self.clone(), key, peer: peer.clone(), body, lent: Some(lent) }
    }

    /// Receives a body of a length over a line: lends memory, and waits until it is written.
    ///
    /// # Errors
    /// When the other end goes, or gives the body up.
    pub async fn receive(
        self: &Arc<Self>,
        key: Key,
        peer: &Peer,
        line: &Line,
        len: usize,
    ) -> Result<Bytes, Status> {
        let lent = self.pool.take(len).await;
        let registered = line.lend(lent.region())?;
        let (writes, written) = oneshot::channel();
        self.lock().coming.insert(key, (peer.clone(), writes));
        let _forgets = Forgets(self, key);
        let gone = |why: &dyn std::fmt::Display| {
            Status::unavailable(format!("receiving a body of {len} bytes: {why}"))
        };
        let (session, call) = key;
        let memory = registered.remote().to_bytes();
        let asked = peer.request_with(LEND, [session, call], memory).await;
        asked.map_err(|why| gone(&why))?;
        match written.await {
            Ok(true) => {}
            Ok(false) => return Err(gone(&"its sender has given it up")),
            Err(_) => return Err(gone(&"the connection has ended")),
        }
        meters::body_received(len);
        // From here on nobody can write there any more.
        let region = registered.revoke_now().map_err(|why| gone(&why))?;
        drop(region);
        lent.into_bytes().ok_or_else(|| gone(&"its memory is still in use"))
    }

    /// Ends all transfers with a peer that has gone.
    pub fn end_all_of(&self, peer: &Peer) {
        let mut table = self.lock();
        table.out.retain(|_, (of, _)| of != peer);
        table.coming.retain(|_, (of, _)| of != peer);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a body that is received off the table.
struct Forgets<'t>(&'t Transfers, Key);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        self.0.lock().coming.remove(&self.1);
    }
}

/// A body that the other end may lend memory for.
pub struct Offered {
    transfers: Arc<Transfers>,
    key: Key,
    peer: Peer,
    body: Bytes,
    lent: Option<oneshot::Receiver<RemoteMemory>>,
}

impl Offered {
    /// Waits until the other end has lent memory, and writes the body there over the line that
    /// `line` gives.
    ///
    /// # Errors
    /// When the other end goes, or does not lend memory for all of the body.
    pub async fn write<L: std::ops::Deref<Target = Line>>(
        mut self,
        line: impl Future<Output = Result<L, Status>>,
    ) -> Result<(), Status> {
        let gone =
            |why: &dyn std::fmt::Display| Status::unavailable(format!("sending a body: {why}"));
        let lent = self.lent.take().expect("a body is written once");
        let memory = lent.await.map_err(|_| gone(&"the connection has ended"))?;
        let line = line.await?;
        let written = line.write(&self.body, memory).await;
        let (session, call) = self.key;
        let words = [session, call, u64::from(written.is_ok())];
        self.peer.request(WRITTEN, words).await.map_err(|why| gone(&why))?;
        written
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.transfers.lock().out.remove(&self.key);
    }
}
