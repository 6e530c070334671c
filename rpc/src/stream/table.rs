//! The table of an endpoint's streams, by their calls, and the handlers of the messages about them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use doorbell_am::{self as am, Credit, Handlers, Peer, SendError};
use doorbell_verbs::floor::locked;

use super::incoming::{Effects, Feedback, Incoming, Reader};
use super::partial::MemoryRequest;
use super::window::Window;
use crate::bulk::Share;
use crate::message::Body;
use crate::owed::{Owed, Word};
use crate::status::{Code, Status};
use crate::wire::{CallKey, GRANT, GRANTED, PIECE, PieceKind};

/// The streams of all calls of an endpoint.
#[derive(Debug, Default)]
pub struct Streams {
    table: Mutex<HashMap<CallKey, Halves>>,
    /// Messages of readers to the senders of their streams, which wait for credits.
    owed: Arc<Owed<Message>>,
}

/// The two directions of a call, as far as they are streams.
#[derive(Debug)]
struct Halves {
    peer: Peer,
    incoming: Option<Arc<Incoming>>,
    outgoing: Option<Arc<Window>>,
}

impl Halves {
    fn is_empty(&self) -> bool {
        self.incoming.is_none() && self.outgoing.is_none()
    }

    /// Ends both directions of the call.
    fn end(&self, status: &Status) {
        if let Some(incoming) = &self.incoming {
            incoming.end(Err(status.clone()));
        }
        if let Some(window) = &self.outgoing {
            window.close();
        }
    }
}

impl Streams {
    /// Adds the handlers of the messages about streams to those of an endpoint.
    pub fn add_handlers(self: &Arc<Self>, handlers: Handlers) -> Handlers {
        let [pieces, grants, granted] = [self.clone(), self.clone(), self.clone()];
        handlers
            .request(PIECE, move |mut request, [session, call, kind]| {
                let came = pieces.came((session, call), kind, &mut request);
                if came.woke {
                    request.note_woken();
                }
                if came.grant > 0 {
                    request.reply(GRANTED, [session, call, came.grant as u64]);
                }
            })
            .request(GRANT, move |request, [session, call, part]| {
                grants.granted((session, call), part);
                request.note_woken();
            })
            .reply(GRANTED, move |reply, [session, call, part]| {
                granted.granted((session, call), part);
                reply.note_woken();
            })
    }

    /// Opens the incoming direction of a call, and returns it as a body. Its pieces have at most
    /// `longest` bytes; a piece that is too long for the window takes memory from `share`.
    pub fn open_incoming(
        self: &Arc<Self>,
        key: CallKey,
        peer: &Peer,
        longest: usize,
        share: Share,
    ) -> Body {
        let incoming = Arc::new(Incoming::new(longest, share));
        self.halves(key, peer, |halves| halves.incoming = Some(incoming.clone()));
        let feedback = PeerFeedback { streams: self.clone(), key, peer: peer.clone() };
        Body::stream(Reader::new(incoming, feedback))
    }

    /// The number of calls of which at least one direction is open.
    pub fn count(&self) -> usize {
        locked(&self.table).len()
    }

    /// Opens the outgoing direction of a call, and returns its window.
    pub fn open_outgoing(&self, key: CallKey, peer: &Peer) -> Arc<Window> {
        let window = Arc::new(Window::new());
        self.halves(key, peer, |halves| halves.outgoing = Some(window.clone()));
        window
    }

    /// Forgets the outgoing direction of a call that was sent over the connection to `peer`.
    pub fn close_outgoing(&self, key: CallKey, peer: &Peer) {
        self.forget(key, peer, |halves| halves.outgoing = None);
    }

    /// Whether the outgoing direction of a call over the connection to `peer` is open.
    pub fn is_sending(&self, key: CallKey, peer: &Peer) -> bool {
        let streams = locked(&self.table);
        let halves = streams.get(&key).filter(|halves| halves.peer == *peer);
        halves.is_some_and(|halves| halves.outgoing.is_some())
    }

    /// Ends both directions of a call that was given up.
    pub fn end(&self, key: CallKey, status: &Status) {
        if let Some(halves) = locked(&self.table).get(&key) {
            halves.end(status);
        }
    }

    /// Ends the streams of all peers that have gone. `status_of` gives the status for the streams
    /// of a peer, or `None` for a peer that has not gone.
    pub fn end_all_of<'s>(&self, status_of: impl Fn(&Peer) -> Option<&'s Status>) {
        for halves in locked(&self.table).values() {
            if let Some(status) = status_of(&halves.peer) {
                halves.end(status);
            }
        }
    }

    /// Ends all streams, because this endpoint is over.
    pub fn end_all(&self, status: &Status) {
        locked(&self.table).values().for_each(|halves| halves.end(status));
    }

    /// The peers with which there are open streams.
    pub fn peers(&self) -> Vec<Peer> {
        let mut peers = Vec::new();
        for halves in locked(&self.table).values() {
            if !peers.contains(&halves.peer) {
                peers.push(halves.peer.clone());
            }
        }
        peers
    }

    fn halves(&self, key: CallKey, peer: &Peer, change: impl FnOnce(&mut Halves)) {
        let mut streams = locked(&self.table);
        let new = || Halves { peer: peer.clone(), incoming: None, outgoing: None };
        let halves = streams.entry(key).or_insert_with(new);
        if halves.peer != *peer {
            let again = Status::unavailable("the call was sent again over another connection");
            std::mem::replace(halves, new()).end(&again);
        }
        change(halves);
    }

    /// Forgets a direction of a call, if the call was sent over the connection to `peer`. If the
    /// call was sent again over another connection, its entry belongs to the later call, and stays.
    fn forget(&self, key: CallKey, peer: &Peer, change: impl FnOnce(&mut Halves)) {
        let mut streams = locked(&self.table);
        if let Some(halves) = streams.get_mut(&key).filter(|halves| halves.peer == *peer) {
            change(halves);
            if halves.is_empty() {
                streams.remove(&key);
            }
        }
    }

    /// Handles a message about a stream: pieces, the end of the stream, or a reader's wish to stop.
    fn came(self: &Arc<Self>, key: CallKey, kind: u64, request: &mut am::Request<'_>) -> Effects {
        let streams = locked(&self.table);
        let Some(halves) = streams.get(&key) else { return Effects::default() };
        let (incoming, outgoing) = (halves.incoming.clone(), halves.outgoing.clone());
        drop(streams);
        let mut came = match (PieceKind::from_word(kind), &incoming, outgoing) {
            (Some(PieceKind::Several), Some(incoming), _) => {
                incoming.put_several(request.take_payload())
            }
            (Some(PieceKind::Last), Some(incoming), _) => {
                incoming.put_piece(request.take_payload())
            }
            (Some(PieceKind::More(len)), Some(incoming), _) => {
                incoming.put_fragment(request.payload(), len)
            }
            (Some(PieceKind::End(code)), Some(incoming), _) => {
                let how = match code {
                    Code::Ok => Ok(()),
                    code => Err(Status::new(code, String::from_utf8_lossy(request.payload()))),
                };
                Ok(Effects { woke: incoming.end(how), ..Effects::default() })
            }
            (Some(PieceKind::Stop), _, Some(window)) => {
                window.close();
                Ok(Effects { woke: true, ..Effects::default() })
            }
            _ => Ok(Effects::default()),
        }
        // The stream has ended with the error, which its reader sees.
        .unwrap_or(Effects { woke: true, ..Effects::default() });
        if let (Some(wanted), Some(incoming)) = (came.wanted.take(), incoming) {
            let feedback = PeerFeedback { streams: self.clone(), key, peer: request.peer() };
            feedback.wants(&incoming, wanted);
            request.note_woken();
        }
        came
    }

    fn granted(&self, key: CallKey, part: u64) {
        let window = locked(&self.table).get(&key).and_then(|halves| halves.outgoing.clone());
        if let Some(window) = window {
            window.grant(usize::try_from(part).unwrap_or(usize::MAX));
        }
    }
}

/// Tells the sender of a stream, by messages, what the stream's reader wants.
#[derive(Clone)]
struct PeerFeedback {
    streams: Arc<Streams>,
    key: CallKey,
    peer: Peer,
}

impl PeerFeedback {
    /// Sends a message about the stream, at once or as soon as there is a credit.
    fn say(&self, message: Message) {
        match self.peer.try_credit() {
            // Sending fails only if the peer has gone, and then nobody needs the message.
            Ok(Some(credit)) => drop(message.send(credit)),
            Ok(None) => self.streams.owed.put(&self.peer, message),
            Err(_) => {}
        }
    }
}

/// A message of a stream's reader to its sender.
#[derive(Debug)]
enum Message {
    /// The sender may send this many more bytes.
    Grant(CallKey, u64),
    /// The reader wants no more pieces.
    Stop(CallKey),
}

impl Word for Message {
    fn send(self, credit: Credit<'_>) -> Result<(), SendError> {
        match self {
            Self::Grant((session, call), part) => credit.request(GRANT, [session, call, part]),
            Self::Stop((session, call)) => {
                credit.request(PIECE, [session, call, PieceKind::Stop.word()])
            }
        }
    }
}

impl Feedback for PeerFeedback {
    fn grant(&self, part: usize) {
        self.say(Message::Grant(self.key, part as u64));
    }

    fn wants(&self, incoming: &Arc<Incoming>, wanted: MemoryRequest) {
        let (feedback, incoming) = (self.clone(), incoming.clone());
        self.peer.runtime().spawn(async move { incoming.reserve(wanted, &feedback).await });
    }

    fn leave(&self, ended: bool) {
        self.streams.forget(self.key, &self.peer, |halves| halves.incoming = None);
        if !ended {
            self.say(Message::Stop(self.key));
        }
    }
}
