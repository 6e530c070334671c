//! Sending the operations and stores that wait for a peer.

use std::time::Duration;

use doorbell_am::costs::{Cost, span};
use doorbell_am::{Credit, SendError};
use doorbell_verbs::ConnectionState;

use super::{Core, Landing, Waits};
use crate::departures::told;
use crate::error::Error;
use crate::heap::{counter, sleepers};
use crate::messages::{ENDED, OPERATIONS, STORES, WAKE};
use crate::peers::{Far, Peer, Route, Shape};

/// How many times a sender looks for a credit before it sleeps between two looks and, as `PAUSE`
/// says, for how long. A waker would not do: the credit could wake another task of this thread that
/// waits for one, and that task can't run while the sender blocks the thread.
const LOOKS: usize = 2000;
const PAUSE: Duration = Duration::from_micros(50);

/// The kind of a message to a peer: operations, which are answered, or stores, which are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Operations,
    Stores,
}

impl Core {
    /// Sends the operations or the stores that wait for a peer, and lets no other task run: while
    /// there is no credit, the call makes progress and, after a while, sleeps between its attempts.
    pub fn send_now(&self, (rank, far): (usize, &Far), what: What) -> Result<(), Error> {
        if is_empty(far, what) {
            return Ok(());
        }
        let _amid = self.amid();
        for look in 0_usize.. {
            if let Some(credit) = self.credit_now((rank, far))? {
                return self.send_by(credit, (rank, far), what);
            }
            self.may_wait_for(rank)?;
            self.bundle.poll(true);
            self.settle();
            // The endpoint learns of the end of a peer by a task, which can't run now, so the
            // connection is asked.
            if let ConnectionState::Ended(_) = far.connection.state() {
                return Err(self.gone(rank, far));
            }
            if look >= LOOKS {
                // Only the NIC of a living peer answers the probe, so the end of a dead one is
                // noticed.
                far.connection.probe();
                std::thread::sleep(PAUSE);
            }
        }
        unreachable!("it looks for a credit until there is one, or the peer has gone")
    }

    fn credit_now<'f>(&self, (rank, far): (usize, &'f Far)) -> Result<Option<Credit<'f>>, Error> {
        let _flow = span(Cost::FlowControl);
        far.messages.try_credit().map_err(|why| self.unsent((rank, far), why))
    }

    /// Sends the operations or the stores that wait for a peer, if there is a credit. Returns whether
    /// none wait any more.
    #[inline]
    pub(super) fn send_at_once(
        &self,
        (rank, far): (usize, &Far),
        what: What,
    ) -> Result<bool, Error> {
        if is_empty(far, what) {
            return Ok(true);
        }
        match self.credit_now((rank, far))? {
            Some(credit) => self.send_by(credit, (rank, far), what).map(|()| true),
            None => Ok(false),
        }
    }

    /// Sends the operations or the stores that wait for a peer, and lets other tasks run while
    /// there is no credit.
    pub(super) async fn send_soon(
        &self,
        (rank, far): (usize, &Far),
        what: What,
    ) -> Result<(), Error> {
        if is_empty(far, what) {
            return Ok(());
        }
        let credit = match self.credit_now((rank, far))? {
            Some(credit) => credit,
            None => {
                let credit = self.reported(Waits::Credit { rank }, far.messages.credit()).await;
                credit.map_err(|why| self.unsent((rank, far), why))?
            }
        };
        match is_empty(far, what) {
            // Another future of this process has sent them meanwhile, and the credit goes back.
            true => Ok(()),
            false => self.send_by(credit, (rank, far), what),
        }
    }

    fn send_by(
        &self,
        credit: Credit<'_>,
        (rank, far): (usize, &Far),
        what: What,
    ) -> Result<(), Error> {
        let _semantics = span(Cost::Semantics);
        match what {
            What::Operations => {
                let (mut entries, batch) = far.outbox.borrow_mut().take_operations();
                let number = far.sent.get();
                let about = (rank as u64) << 32 | number & u64::from(u32::MAX);
                far.pending.borrow_mut().push_back(batch);
                far.sent.set(number + 1);
                self.outstanding.set(self.outstanding.get() + 1);
                let sent = credit.request_with(OPERATIONS, about, &entries);
                // The buffer of the entries serves for the next message.
                entries.clear();
                far.outbox.borrow_mut().operations = entries;
                sent.map_err(|why| self.unsent((rank, far), why))
            }
            What::Stores => {
                let (mut entries, stored) = {
                    let mut outbox = far.outbox.borrow_mut();
                    (std::mem::take(&mut outbox.stores), std::mem::take(&mut outbox.stored))
                };
                far.unconfirmed.set(true);
                let sent = credit.request_with(STORES, (stored, self.turn.get()), &entries);
                entries.clear();
                far.outbox.borrow_mut().stores = entries;
                sent.map_err(|why| self.unsent((rank, far), why))
            }
        }
    }

    /// Adds the bytes that were stored at a peer without messages to the counter in the peer's
    /// heap, if that does not include them yet.
    pub fn tell(&self, peer: &Peer) -> Result<(), Error> {
        let bytes = peer.untold.take();
        if bytes == 0 {
            return Ok(());
        }
        self.make_changes();
        match (peer.route(Shape::Awaited, 8), &peer.far) {
            (Route::Memory(memory), _) => {
                let _ = memory.fetch_add(counter(self.turn.get()), bytes);
                self.wake(peer)
            }
            (_, Some(far)) => {
                let counter = counter(self.turn.get());
                self.post_fetch_add((peer.rank, far), counter, bytes, Landing::Nothing)
            }
            (_, None) => Ok(()),
        }
    }

    /// Wakes a peer that sleeps until its memory changes, after a change that was made without a
    /// message.
    pub fn wake(&self, peer: &Peer) -> Result<(), Error> {
        let (Some(memory), Some(far)) = (&peer.memory, &peer.far) else { return Ok(()) };
        if !sleepers(memory).are_there() {
            return Ok(());
        }
        match self.credit_now((peer.rank, far))? {
            Some(credit) => {
                credit.request(WAKE, 0).map_err(|why| self.unsent((peer.rank, far), why))
            }
            // The messages that use up all credits wake the peer as well.
            None => Ok(()),
        }
    }

    /// Sends an empty message of operations to each peer that was sent stores by messages since the
    /// last confirmation: its answer, which counts as outstanding, says that the stores have
    /// arrived.
    pub async fn confirm(&self) -> Result<(), Error> {
        for peer in &self.peers {
            let Some(far) = peer.far.as_ref().filter(|far| far.unconfirmed.get()) else {
                continue;
            };
            let rank = peer.rank;
            let credit = self.reported(Waits::Credit { rank }, far.messages.credit()).await;
            let credit = credit.map_err(|why| self.unsent((rank, far), why))?;
            // Another future of this process may have asked meanwhile.
            if far.unconfirmed.replace(false) {
                self.send_by(credit, (rank, far), What::Operations)?;
            }
        }
        Ok(())
    }

    /// Tells all peers that the program of this process has ended, behind all that the process has
    /// sent to them.
    pub async fn tell_of_end(&self) -> Result<(), Error> {
        for (rank, far) in
            self.peers.iter().filter_map(|peer| Some((peer.rank, peer.far.as_ref()?)))
        {
            let credit = self.reported(Waits::Credit { rank }, far.messages.credit()).await;
            let credit = credit.map_err(|why| self.unsent((rank, far), why))?;
            credit.request(ENDED, 0).map_err(|why| self.unsent((rank, far), why))?;
        }
        Ok(())
    }

    /// The error about a message to a peer that could not be sent.
    #[cold]
    fn unsent(&self, (rank, far): (usize, &Far), why: SendError) -> Error {
        if let SendError::Gone { .. } = why {
            return self.gone(rank, far);
        }
        Error::invalid(format!("a message to process {rank} could not be sent: {why}"))
    }

    /// The error about a peer whose connection has ended, which is noted as the end of that
    /// process.
    #[cold]
    pub fn gone(&self, rank: usize, far: &Far) -> Error {
        let why = match far.connection.state() {
            ConnectionState::Ended(ending) => told(&ending),
            _ => far.messages.ending().map_or_else(
                || "its connection does not take requests any more".to_owned(),
                |ending| told(&ending),
            ),
        };
        self.note_end(rank, far, &why);
        self.departures.of(rank).into()
    }

    /// Notes that a peer has gone, and why.
    #[cold]
    pub fn note_end(&self, rank: usize, _far: &Far, why: &str) {
        self.departures.note(rank, why);
    }
}

fn is_empty(far: &Far, what: What) -> bool {
    let outbox = far.outbox.borrow();
    match what {
        What::Operations => outbox.operations.is_empty(),
        What::Stores => outbox.stores.is_empty(),
    }
}
