//! One-sided requests: posted to peers, and completed.

use std::task::Waker;

use doorbell_am::costs::{Cost, span};
use doorbell_verbs::work::{CompareSwap, FetchAdd, Read, Write};
use doorbell_verbs::{Data, Done, Failure, Memory, PostError, WorkRequest};

use super::Core;
use super::flight::{Flight, Landing};
use super::port::Port;
use crate::error::Error;
use crate::landing::Slot;
use crate::peers::Far;

impl Core {
    /// Posts a one-sided request to a peer. While the send queue is full, the call makes progress
    /// and blocks the thread, until there is room or the peer has gone.
    pub fn post(
        &self,
        (rank, far): (usize, &Far),
        request: WorkRequest,
        landing: Landing,
    ) -> Result<(), Error> {
        let key = self.flights.borrow_mut().insert(Flight { rank, landing });
        let mut request = WorkRequest { id: key as u64, ..request };
        loop {
            let posted = {
                let _base = span(Cost::Base);
                far.requests.borrow_mut().post(request)
            };
            match posted {
                Ok(()) => {
                    self.outstanding.set(self.outstanding.get() + 1);
                    return Ok(());
                }
                // The refusal says that the queue was full. Its room would not do as a condition:
                // by now there may be some again.
                Err(refused) if matches!(refused.why, PostError::Full { .. }) => {
                    if let Err(why) = self.may_wait_for(rank) {
                        self.flights.borrow_mut().remove(key);
                        return Err(why);
                    }
                    let _amid = self.amid();
                    request = *refused.request;
                    self.settle();
                    if far.requests.borrow().room() == 0 {
                        self.bundle.poll(true);
                    }
                    if self.departures.has_gone(rank) {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        self.flights.borrow_mut().remove(key);
        Err(self.gone(rank, far))
    }

    /// Posts an RDMA write of `data` to a place in the heap of a peer.
    pub fn post_write(
        &self,
        peer: (usize, &Far),
        offset: usize,
        data: impl Into<Data>,
        landing: Landing,
    ) -> Result<(), Error> {
        let data = data.into();
        let to = peer.1.heap.at(offset as u64, data.len()).expect("the range was checked");
        let request = Write::new(data, to).expect("the range is as long as the data");
        self.post(peer, request.awaited().into(), landing)
    }

    /// Posts an RDMA read of `len` bytes of the heap of a peer, into memory of that length.
    pub fn post_read(
        &self,
        peer: (usize, &Far),
        (offset, len): (usize, usize),
        into: impl Into<Memory>,
        landing: Landing,
    ) -> Result<(), Error> {
        let from = peer.1.heap.at(offset as u64, len as u64).expect("the range was checked");
        let request = Read::new(into, from).expect("the memory is as long as the range");
        self.post(peer, request.awaited().into(), landing)
    }

    /// Posts a fetch-and-add to a word of the heap of a peer.
    pub fn post_fetch_add(
        &self,
        peer: (usize, &Far),
        offset: usize,
        value: u64,
        landing: Landing,
    ) -> Result<(), Error> {
        let word = peer.1.heap.at(offset as u64, 8).expect("the range was checked");
        let request = FetchAdd::new(word, value).expect("the word is aligned");
        self.post(peer, request.awaited().into(), landing)
    }

    /// Posts a compare-and-swap, which replaces a word of the heap of a peer by `new` if the word
    /// is `expected`.
    pub fn post_compare_swap(
        &self,
        peer: (usize, &Far),
        offset: usize,
        [expected, new]: [u64; 2],
        landing: Landing,
    ) -> Result<(), Error> {
        let word = peer.1.heap.at(offset as u64, 8).expect("the range was checked");
        let request = CompareSwap::new(word, expected, new).expect("the word is aligned");
        self.post(peer, request.awaited().into(), landing)
    }

    /// Takes the completions of one-sided requests, and lands their results.
    pub(super) fn settle_flights(&self) {
        self.ports.iter().for_each(|port| self.settle_flights_of(port));
    }

    /// Has the waker woken when a one-sided request is done.
    pub(super) fn arm(&self, waker: &Waker) {
        self.ports.iter().for_each(|port| port.completions.borrow_mut().arm(waker));
    }

    fn settle_flights_of(&self, port: &Port) {
        loop {
            let (id, outcome, memory) = {
                let mut completions = port.completions.borrow_mut();
                let Some(mut done) = completions.look() else { return };
                (done.id, done.outcome, std::mem::take(&mut done.memory))
            };
            self.outstanding.set(self.outstanding.get() - 1);
            let flight = self.flights.borrow_mut().remove(id as usize);
            self.land(flight, outcome, memory);
        }
    }

    fn land(&self, flight: Flight, outcome: Result<Done, Failure>, memory: Memory) {
        let _semantics = span(Cost::Semantics);
        let done = match outcome {
            Ok(done) => done,
            Err(why) => return self.crash(flight, why),
        };
        match flight.landing {
            Landing::Nothing => {}
            Landing::Tally(tally) => tally.one_done(),
            Landing::Slot(slot) => match done {
                Done::Atomic { before } => self.fill(slot, Slot::Few(before.to_ne_bytes())),
                _ => self.fill(slot, Slot::of(&memory.into_buf())),
            },
            Landing::Row(row, at) => row.borrow_mut().land(at, &memory.into_buf()),
        }
    }

    #[cold]
    fn crash(&self, flight: Flight, why: Failure) {
        let rank = flight.rank;
        if let Some(far) = &self.peers[rank].far {
            self.note_end(rank, far, &why.to_string());
        }
        let why: Error = self.departures.of(rank).into();
        match flight.landing {
            Landing::Nothing => self.note(why),
            Landing::Tally(tally) => {
                tally.failed(&why);
                self.note(why);
            }
            Landing::Slot(slot) => self.fill(slot, Slot::Failed(why)),
            Landing::Row(row, _) => {
                row.borrow_mut().fail(&why);
                self.note(why);
            }
        }
    }
}
