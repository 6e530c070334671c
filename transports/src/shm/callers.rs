//! Callers: devices that connect to this one, and are given a link or told why not.

use std::io;
use std::os::fd::AsFd;

use super::handshakes::{LISTENER, listening};
use super::link::{Segment, Side, receive, send};
use super::message::{LONGEST, Message, Refusal, Unreadable};
use super::state::Shm;
use crate::device::Trouble;
use crate::sys::deferred_close;
use crate::sys::limit::Limit;
use crate::sys::unix::{Listener, ReceivedMessage, Reserve, Socket};

/// The most callers that have connected and not yet said hello.
const MOST_CALLERS: usize = 16;

impl Shm {
    /// Lets others find this device by its name.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let listener = Listener::by_name(&listening(&self.handshakes.name))?;
        self.watch.add(&listener, LISTENER)?;
        (self.handshakes.listener, self.handshakes.reserve) =
            (Some(listener), Some(Reserve::new()?));
        Ok(())
    }

    /// Accepts the callers that have connected.
    pub(super) fn accept(&mut self) {
        for _ in 0..MOST_CALLERS {
            let socket = match self.handshakes.listener.as_ref().map(Listener::accept) {
                Some(Ok(socket)) => socket,
                Some(Err(why)) if why.kind() == io::ErrorKind::ResourceBusy => {
                    return self.pause_accepting();
                }
                Some(Err(why)) if Limit::behind(&why).is_some() => return self.turn_away(),
                _ => return,
            };
            if !socket.is_trusted() {
                self.handshakes.stranger = Some(socket.holder());
                self.refuse(&socket, Refusal::Stranger);
                continue;
            }
            if self.handshakes.callers.len() == MOST_CALLERS {
                self.handshakes.callers.pop_front();
                self.statistics.strangers += 1;
            }
            let number = self.handshakes.next_number();
            if self.watch.add(&socket, number).is_ok() {
                self.handshakes.callers.push_back((number, socket));
                self.hear(number);
            }
        }
    }

    /// Stops accepting callers until there is room for descriptors that strangers pass. Callers
    /// wait meanwhile.
    #[cold]
    fn pause_accepting(&mut self) {
        if let Some(listener) = &self.handshakes.listener
            && self.watch.remove(listener).is_ok()
        {
            tracing::warn!("too much that strangers have passed waits to be closed");
            self.handshakes.shut = true;
        }
    }

    /// Accepts callers again, if there is room.
    #[cold]
    pub(super) fn resume_accepting(&mut self) {
        if let Some(listener) = &self.handshakes.listener
            && deferred_close::has_room()
            && self.watch.add(listener, LISTENER).is_ok()
        {
            self.handshakes.shut = false;
        }
    }

    /// Returns the trouble of a device that accepts no callers, or `None` if it accepts them.
    pub(super) fn accept_trouble(&self) -> Option<Trouble> {
        if !self.handshakes.shut {
            return None;
        }
        let mut found =
            format!("{} descriptors that were passed wait to be closed", deferred_close::MOST);
        if let Some(stranger) = self.handshakes.stranger {
            found.push_str(&format!("; the last stranger who called was {stranger}"));
        }
        Some(Trouble {
            what: format!("taking in callers of {}", self.address),
            found,
            advice: "links go on, and callers wait; end the process that passes them. From Linux 6.16 \
                     on, strangers can pass nothing",
        })
    }

    /// Tells callers that there is no descriptor left for them. Otherwise they would wait for an
    /// answer in vain.
    #[cold]
    fn turn_away(&mut self) {
        for _ in 0..MOST_CALLERS {
            self.handshakes.reserve = None;
            let caller = self.handshakes.listener.as_ref().map(Listener::accept);
            if let Some(Ok(caller)) = &caller {
                self.refuse(caller, Refusal::Descriptors);
            }
            let done = !matches!(caller, Some(Ok(_)));
            drop(caller);
            // If another thread has taken the descriptor by now, the next caller waits.
            self.handshakes.reserve = Reserve::new().ok();
            if done {
                return;
            }
        }
    }

    /// Tells a caller why there will be no link.
    fn refuse(&mut self, caller: &Socket, why: Refusal) {
        self.statistics.strangers += u64::from(why == Refusal::Stranger);
        let _ = send(caller, Message::Answer(Err(why)), None);
    }

    /// Takes the first message of a caller, and makes a link or refuses one.
    pub(super) fn hear(&mut self, number: u64) {
        let found = self.handshakes.callers.iter().position(|(caller, _)| *caller == number);
        let Some(at) = found else { return };
        let mut bytes = [0; LONGEST + 1];
        let len = match receive(&self.handshakes.callers[at].1, &mut bytes) {
            ReceivedMessage::Nothing => return,
            ReceivedMessage::Message(len, _) => len,
            // A caller that closes without a message has looked who has the name.
            ReceivedMessage::End => return drop(self.handshakes.callers.remove(at)),
            ReceivedMessage::NoDescriptor => 0,
        };
        let Some((_, mut socket)) = self.handshakes.callers.remove(at) else { return };
        // The caller is trusted, or would have been refused. The descriptors it passes are memory.
        socket.let_descriptors_in();
        match Message::read(&bytes[..len]) {
            Ok(Message::Hello { lines, name }) => match self.offer(&socket, lines, name) {
                Ok(segment) => {
                    self.handshakes.calls.retain(|call| *call.name != *name);
                    self.link(&segment, Side::Called, socket, name);
                }
                Err(why) => self.refuse(&socket, why),
            },
            Err(Unreadable::OtherVersion) => self.refuse(&socket, Refusal::Version),
            _ => self.statistics.strangers += 1,
        }
    }

    /// Makes the memory of a link and sends it to a caller, unless the caller can have no link.
    fn offer(&mut self, caller: &Socket, lines: u32, name: &str) -> Result<Segment, Refusal> {
        if let Some(id) = self.links.named(name).map(|link| link.id) {
            // The peer may have died, and the caller be the next process by its name.
            self.listen_to(id);
        }
        if *name == *self.handshakes.name || self.links.named(name).is_some() {
            return Err(Refusal::Linked);
        }
        let crossed = self.handshakes.calls.iter().any(|call| *call.name == *name);
        if crossed && *self.handshakes.name < *name {
            return Err(Refusal::Crossed);
        }
        if self.links.is_full() {
            return Err(Refusal::Full);
        }
        let lines = lines.min(self.handshakes.lines);
        let offer = || {
            let segment = Segment::new(lines)?;
            send(caller, Message::Answer(Ok(lines)), Some(segment.sealed.as_fd()))?;
            Ok::<_, io::Error>(segment)
        };
        offer().map_err(|why| Refusal::of(&why))
    }
}
