//! Calls, notices and requests to a peer.

use super::Peer;
use super::call::{begin, begin_later, called, failed, not_sent, too_late, undelivered};
use super::credit::credit;
use super::deadline::Deadline;
use super::lookup::{place, place_of};
use crate::arguments::{Arguments, Room};
use crate::error::{CallError, Called, SendError};
use crate::kinds::{Callable, Notice, OneWay, RequestId};
use crate::wire::{Content, Words};

impl Peer {
    /// Calls a handler of the peer, and waits for the answer, for no longer than
    /// [`within`](Self::within) says if there is a bound. The result of a [`Call`](crate::Call) is
    /// the value that the handler has returned, and the result of a [`RequestId`] is the
    /// [`Reply`](crate::Reply).
    ///
    /// ```
    /// use doorbell_am::{Call, CallError, Peer};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// async fn add(peer: &Peer) -> Result<u64, CallError> {
    ///     peer.call(ADD, (2, 3)).await
    /// }
    /// ```
    ///
    /// A call whose future is dropped, by `select!` or `timeout` for example, is given up. The peer
    /// is told at once, and ends an asynchronous handler of the call at its await. Other handlers run
    /// to their end, and a request that they [keep](crate::Request::keep) holds its credit until it
    /// is answered or the [`patience`](crate::EndpointConfig::patience) is over.
    ///
    /// # Errors
    /// When the call was not sent, not delivered, or not answered, or the handler has failed.
    #[inline]
    pub async fn call<K: Callable>(
        &self,
        kind: K,
        arguments: K::Arguments,
    ) -> Result<K::Answer, CallError> {
        let mut room = Room::new();
        self.call_content(kind, room.content(&arguments)).await
    }

    /// Calls a handler of the peer with a copy of a payload beside the arguments. The handler finds
    /// the payload in its [request](crate::Request::payload).
    ///
    /// # Errors
    /// As for [`call`](Self::call), and when the payload is longer than the peer takes.
    #[inline]
    pub async fn call_with<K: Callable>(
        &self,
        kind: K,
        arguments: K::Arguments,
        payload: impl AsRef<[u8]>,
    ) -> Result<K::Answer, CallError> {
        let mut room = Room::new();
        self.call_content(kind, room.content_with(&arguments, payload.as_ref())).await
    }

    #[inline]
    async fn call_content<K: Callable>(
        &self,
        kind: K,
        content: Content<'_>,
    ) -> Result<K::Answer, CallError> {
        let place = match place(kind, &self.link) {
            Some(place) => place,
            None => self.look_up(kind).await?,
        };
        let link = self.link.lane(content);
        let (mut deadline, mut answer) = (Deadline::of(self.within), None);
        // Spelled out as in `ask_within`: called from here, that would store its arguments only to
        // load them again.
        let begun = match begin(link, place, content) {
            Ok(Some(begun)) => begun,
            Ok(None) => match begin_later(link, place, content, &mut deadline).await {
                Ok(begun) => begun,
                Err(why) => return Err(not_sent(link, called(kind), why)),
            },
            Err(why) => return Err(not_sent(link, called(kind), why)),
        };
        begun.answered(link, &mut answer, &mut deadline).await;
        match answer {
            Some(Ok(reply)) => {
                kind.answer(reply).map_err(|failure| failed(link, called(kind), failure))
            }
            Some(Err(why)) => Err(undelivered(link, called(kind), why)),
            None => Err(too_late(link, called(kind), &deadline)),
        }
    }

    /// Asks the peer for the place of a handler.
    #[cold]
    async fn look_up<K: Callable>(&self, kind: K) -> Result<u16, CallError> {
        let found = Box::pin(place_of(kind, &self.link, self.within)).await;
        found.map_err(|why| why.about(Called::new(self.link.peer_text(), None, kind.name())))
    }

    /// Sends a notice once there is a credit for it, and does not wait until the notice is handled.
    ///
    /// If other requests to the peer are under way, the notice shares a send with messages that
    /// follow. It leaves when this task lets other tasks run at the latest; a task that blocks its
    /// thread instead holds the notice back.
    ///
    /// ```
    /// use doorbell_am::{Notice, Peer, SendError};
    ///
    /// const MOVED: Notice<(u64, f64, f64)> = Notice::new("moved");
    ///
    /// async fn tell(peer: &Peer) -> Result<(), SendError> {
    ///     peer.notify(MOVED, (7, 0.5, -2.0)).await
    /// }
    /// ```
    ///
    /// # Errors
    /// When the peer has gone or has no such handler, or a handler calls this that does not wait.
    #[inline]
    pub async fn notify<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(notice, room.content(&arguments)).await
    }

    /// Sends a notice at once, in a send of its own, if there is a credit now and the place of its
    /// handler is known. Returns whether it was sent.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    #[inline]
    pub(crate) fn try_notify<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: &A,
    ) -> Result<bool, SendError> {
        let Some(place) = place(notice, &self.link) else { return Ok(false) };
        let mut room = Room::new();
        let content = room.content(arguments);
        let link = self.link.lane(content);
        link.check_allowed(content)?;
        link.try_request_at_once(place, content)
    }

    /// Sends a notice with a copy of a payload beside the arguments.
    ///
    /// # Errors
    /// As for [`notify`](Self::notify), and when the payload is longer than the peer takes.
    #[inline]
    pub async fn notify_with<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(notice, room.content_with(&arguments, payload.as_ref())).await
    }

    /// Sends a request to a handler whose place the program has chosen, once there is a credit for
    /// it, and does not wait until the request is handled. A reply runs a [reply
    /// handler](crate::Handlers::reply) here. The request may share a send, as a
    /// [notice](Self::notify) may.
    ///
    /// # Errors
    /// When the peer has gone, or a handler calls this that does not wait.
    #[inline]
    pub async fn request<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(id, room.content(&arguments)).await
    }

    /// Sends a request if there is a credit for it now, in order with those that are sent by a
    /// [`Credit`](super::Credit). Returns whether the request was sent.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    #[inline]
    pub fn try_request<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: &A,
    ) -> Result<bool, SendError> {
        let mut room = Room::new();
        let content = room.content(arguments);
        self.link.check_allowed(content)?;
        self.link.try_request(id.index(), content)
    }

    /// Sends a request of up to sixteen words as [`try_request`](Self::try_request) does, without a
    /// copy of the words between. For layers of this workspace that stand on Active Messages.
    ///
    /// # Errors
    /// As [`try_request`](Self::try_request), and when there are more words than the peer takes.
    #[doc(hidden)]
    #[inline]
    pub fn try_request_words(
        &self,
        id: RequestId<Words>,
        words: &[u64],
    ) -> Result<bool, SendError> {
        let content = Content { words, payload: &[] };
        self.link.check_allowed(content)?;
        self.link.try_request(id.index(), content)
    }

    /// Sends a request with a copy of a payload beside the arguments, if there is a credit for it
    /// now. Returns whether the request was sent. For layers of this workspace that stand on Active
    /// Messages.
    ///
    /// # Errors
    /// As [`request_with`](Self::request_with).
    #[doc(hidden)]
    #[inline]
    pub fn try_request_with<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: &A,
        payload: &[u8],
    ) -> Result<bool, SendError> {
        let mut room = Room::new();
        let content = room.content_with(arguments, payload);
        self.link.check_allowed(content)?;
        self.link.try_request(id.index(), content)
    }

    /// Sends a request with a copy of a payload beside the arguments.
    ///
    /// # Errors
    /// As for [`request`](Self::request), and when the payload is longer than the peer takes.
    #[inline]
    pub async fn request_with<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(id, room.content_with(&arguments, payload.as_ref())).await
    }

    #[inline]
    async fn send<K: OneWay>(&self, kind: K, content: Content<'_>) -> Result<(), SendError> {
        let place = self.place_for(kind).await?;
        let link = self.link.lane(content);
        link.check_allowed(content)?;
        if link.try_request(place, content)? {
            return Ok(());
        }
        credit(link, &mut Deadline::of(self.within)).await?.send(place, content)
    }

    /// Returns the place of a handler in the peer's table, which the peer is asked for if need be.
    #[inline]
    pub(super) async fn place_for<K: OneWay>(&self, kind: K) -> Result<u16, SendError> {
        if let Some(place) = place(kind, &self.link) {
            return Ok(place);
        }
        let found = Box::pin(place_of(kind, &self.link, self.within)).await;
        found.map_err(|why| why.of_a_question(self.link.peer_text()))
    }
}
