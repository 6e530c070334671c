//! The receives of an endpoint: where messages go.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::{Domain, Name, Region, Rights};

use super::peer::Peer;
use super::receive::{Letter, ReceiveSlot};
use crate::frames::engine::{Destination, Receives};
use crate::frames::error::{ReceiveError, WhyGone};
use crate::frames::wire::MessageHeader;
use crate::matching::{Envelope, Matcher, Pattern, Post, PostedId, Source, Taken};

/// The receives that were posted, and the messages that wait for receives.
#[derive(Debug)]
pub struct Posted {
    matcher: Matcher<Waiting, Note>,
    /// How many messages wait, and how many may.
    noted: usize,
    most_noted: usize,
    /// The longest message that a receive takes, whatever room it has.
    longest: usize,
    /// Peers that have closed their endpoints, and of which no message has come since.
    closed: HashMap<Source, Name>,
    /// Where memory is registered that peers may write.
    domain: Domain,
}

/// A receive that waits for its message. The end of the endpoint ends the receive.
#[derive(Debug)]
struct Waiting(Arc<ReceiveSlot>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.0.has_met.swap(true, Ordering::Relaxed) {
            self.0.outcome.fill(Err(ReceiveError::Closed));
        }
    }
}

impl Waiting {
    /// Takes the receive, which has met a message or was cancelled.
    fn met(self) -> Arc<ReceiveSlot> {
        self.0.has_met.store(true, Ordering::Relaxed);
        self.0.clone()
    }

    /// Ends the receive with an error.
    fn fail(self, why: &ReceiveError) {
        self.met().outcome.fill(Err(why.clone()));
    }
}

/// A message that waits for a receive.
#[derive(Clone, Debug)]
pub struct Note {
    pub number: u32,
    pub header: MessageHeader,
    pub from: Peer,
    /// Whether the message would be placed by RDMA writes.
    remote: bool,
}

/// The outcome of posting a receive: the waiting message that the receive has met, if any.
#[derive(Debug)]
pub enum Met {
    Nothing(PostedId),
    /// A message that goes here.
    Message(Note, Letter),
    /// A message that is too long for the receive.
    TooLong(Note),
    /// No message, and none will come: the only peer that the receive takes messages of has closed.
    PeerClosed,
}

impl Posted {
    pub fn new(most_noted: usize, longest: usize, domain: Domain) -> Self {
        let (matcher, closed) = (Matcher::default(), HashMap::new());
        Self { matcher, noted: 0, most_noted, longest, closed, domain }
    }

    /// Posts a receive, and returns the waiting message that the receive has met, if any. If that
    /// message is too long, or no message can come, the receive fails.
    pub fn post(&mut self, pattern: Pattern, slot: Arc<ReceiveSlot>) -> Met {
        match self.matcher.post(pattern, Waiting(slot)) {
            Post::Waits(id) => {
                let closed = pattern.source.and_then(|source| self.closed.get(&source)).cloned();
                let Some(peer) = closed else { return Met::Nothing(id) };
                let gone = ReceiveError::PeerGone { peer, why: WhyGone::Closed };
                self.matcher.cancel(id).into_iter().for_each(|waiting| waiting.fail(&gone));
                Met::PeerClosed
            }
            Post::Met(slot, Taken { message: note, .. }) => {
                self.noted -= 1;
                match self.letter(slot.met(), &note.header, &note.from, note.remote) {
                    Some(letter) => Met::Message(note, letter),
                    None => Met::TooLong(note),
                }
            }
        }
    }

    /// Takes a receive back that waits.
    pub fn cancel(&mut self, id: PostedId) -> bool {
        self.matcher.cancel(id).map(Waiting::met).is_some()
    }

    /// Returns the message that a receive would meet.
    pub fn probe(&mut self, pattern: Pattern) -> Option<Note> {
        self.matcher.probe(pattern).map(|(_, note)| note.clone())
    }

    /// Forgets the messages of a peer that wait.
    pub fn forget(&mut self, source: Source) {
        let nobody = || Waiting(Arc::new(ReceiveSlot::new(0)));
        loop {
            match self.matcher.post(Pattern::new(Some(source), 0, 0), nobody()) {
                Post::Met(..) => self.noted -= 1,
                Post::Waits(id) => {
                    self.matcher.cancel(id);
                    return;
                }
            }
        }
    }

    /// Ends the receives that wait for messages of a peer alone, because the peer is gone.
    pub fn gone(&mut self, peer: &Peer, why: WhyGone) {
        let (source, name) = (peer.source(), peer.name().clone());
        let is_closed = why == WhyGone::Closed;
        let gone = ReceiveError::PeerGone { peer: name.clone(), why };
        let receives = self.matcher.cancel_all(|pattern| pattern.source == Some(source));
        receives.into_iter().for_each(|waiting| waiting.fail(&gone));
        if is_closed {
            self.closed.insert(source, name);
        }
    }

    /// Ends all receives that wait.
    pub fn close(&mut self) {
        (self.matcher, self.noted) = (Matcher::default(), 0);
    }

    /// Makes the place of a message, if the receive has room for it. Otherwise the receive ends.
    fn letter(
        &self,
        slot: Arc<ReceiveSlot>,
        header: &MessageHeader,
        from: &Peer,
        remote: bool,
    ) -> Option<Letter> {
        let room = slot.room.min(self.longest);
        let Some(len) = usize::try_from(header.len).ok().filter(|&len| len <= room) else {
            let MessageHeader { bits, len, .. } = *header;
            let peer = from.name().clone();
            slot.outcome.fill(Err(ReceiveError::Truncated { peer, bits, len, room }));
            return None;
        };
        // Where registering fails, frames come as datagrams.
        let memory = (remote && header.frames > 1)
            .then(|| self.domain.register(Region::new(len), Rights::REMOTE_WRITE).ok())
            .flatten();
        Some(Letter::new(slot, header.bits, from.clone(), len, memory))
    }
}

/// The receives of an endpoint, for the messages of one peer.
pub struct From<'p> {
    pub posted: &'p mut Posted,
    pub peer: &'p Peer,
}

impl Receives<Letter> for From<'_> {
    fn destination(
        &mut self,
        number: u32,
        header: &MessageHeader,
        remote: bool,
    ) -> Destination<Letter> {
        let Self { posted, peer } = self;
        posted.closed.remove(&peer.source());
        let envelope = Envelope { source: peer.source(), bits: header.bits };
        if let Some(slot) = posted.matcher.receive_for(envelope) {
            return match posted.letter(slot.met(), header, peer, remote) {
                Some(letter) => Destination::Place(letter),
                None => Destination::Nowhere,
            };
        }
        if posted.noted == posted.most_noted {
            return Destination::Full;
        }
        posted.noted += 1;
        let from = (*peer).clone();
        let note = Note { number, header: *header, from, remote };
        posted.matcher.put(envelope, number.into(), note);
        Destination::Waits
    }
}
