//! Calls: how this device asks others for a link, and what they answer.

use std::io;

use doorbell_core::nic::Way;
use doorbell_core::time::Time;

use super::handshakes::{CallError, Handshakes, NotCalled, PATIENCE, listening};
use super::link::{Segment, Side, receive, send};
use super::message::{LONGEST, Message, Refusal};
use super::state::Shm;
use crate::sys::limit::Limit;
use crate::sys::unix::Sealed;
use crate::sys::unix::{ReceivedMessage, Socket};

impl Shm {
    /// Calls a peer, whose answer is then awaited. `since` is the time of the first try, if too
    /// many callers were waiting there.
    pub(super) fn call(
        &mut self,
        name: &str,
        since: Time,
        now: Time,
    ) -> Result<Option<Way>, NotCalled> {
        let mut socket = match Socket::connect(&listening(name)) {
            Ok(socket) => socket,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock if now.since(since) > PATIENCE => {
                    return Err(NotCalled::Busy);
                }
                io::ErrorKind::WouldBlock => {
                    self.handshakes.busy = true;
                    let number = self.handshakes.next_number();
                    self.handshakes.await_answer(number, name, since, None);
                    return Ok(None);
                }
                io::ErrorKind::ConnectionRefused => return Err(NotCalled::Nobody),
                _ => return Err(NotCalled::System(error)),
            },
        };
        if !socket.is_trusted() {
            return Err(NotCalled::Stranger(socket.holder()));
        }
        socket.let_descriptors_in();
        let Handshakes { lines, name: own, .. } = &self.handshakes;
        match send(&socket, Message::Hello { lines: *lines, name: own }, None) {
            // The peer has refused the call already. Its answer says why.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {}
            said => said.map_err(NotCalled::System)?,
        }
        let number = self.handshakes.next_number();
        self.watch.add(&socket, number).map_err(NotCalled::System)?;
        self.handshakes.await_answer(number, name, now, Some(socket));
        Ok(None)
    }

    /// Takes the answer of a peer that was called.
    pub(super) fn answered(&mut self, number: u64) {
        let Some(at) = self.handshakes.calls.iter().position(|call| call.number == number) else {
            return;
        };
        let call = &mut self.handshakes.calls[at];
        let Some(socket) = &call.socket else { return };
        let mut bytes = [0; LONGEST + 1];
        let (len, fd) = match receive(socket, &mut bytes) {
            ReceivedMessage::Nothing => return,
            ReceivedMessage::Message(len, fd) => (len, fd),
            ReceivedMessage::NoDescriptor => {
                call.socket = None;
                let why = Limit::Descriptors.refused("taking in the memory of a link");
                call.failed = Some(CallError::Here(why));
                return;
            }
            ReceivedMessage::End => (0, None),
        };
        let socket = call.socket.take();
        call.failed = match (Message::read(&bytes[..len]), fd, socket) {
            (Ok(Message::Answer(Ok(lines))), Some(fd), Some(socket)) => {
                let fits = lines <= self.handshakes.lines;
                let found = fits.then(|| Sealed::received(fd, Segment::bytes(lines) as u64));
                match found.and_then(Result::ok).map(|sealed| Segment::of(sealed, lines)) {
                    Some(Ok(segment)) => {
                        let name = call.name.clone();
                        self.handshakes.calls.remove(at);
                        self.link(&segment, Side::Caller, socket, &name);
                        return;
                    }
                    Some(Err(why)) if Limit::behind(&why).is_some() => Some(CallError::Here(why)),
                    Some(Err(_)) => {
                        Some(CallError::There("the memory that it sent can't be mapped here"))
                    }
                    None => {
                        Some(CallError::There("the memory that it sent is not what it must be"))
                    }
                }
            }
            // The peer calls, too, and its call goes on.
            (Ok(Message::Answer(Err(Refusal::Crossed))), ..) => None,
            (Ok(Message::Answer(Err(Refusal::Stranger))), _, Some(socket)) => {
                Some(CallError::Stranger(socket.holder()))
            }
            (Ok(Message::Answer(Err(why))), ..) => Some(CallError::Refused(why.why())),
            (Err(_), ..) if len == 0 => Some(CallError::There("it hung up")),
            _ => Some(CallError::There("its answer makes no sense")),
        };
    }
}
