//! How records and messages are taken from links, and links are taken down.

use doorbell_core::encap::PathId;
use doorbell_core::nic::Inbox;

use super::link::{self, PeerState};
use super::links;
use super::message::{LONGEST, Message};
use super::ring;
use super::state::Shm;
use crate::sys::limit::Limit;
use crate::sys::unix::ReceivedMessage;

/// The most messages that are taken at once from one peer's socket.
const MESSAGES: usize = 16;

/// The most grants of a peer that the program has not taken yet.
pub(super) const MOST_GRANTS: usize = 64;

impl Shm {
    /// Hands the next record of any link to `inbox`, and returns whether there was one. The link
    /// from which something came last is looked at first.
    #[inline]
    pub(super) fn take(&mut self, inbox: &mut impl Inbox) -> bool {
        for _ in 0..self.links.awake() {
            if self.at >= self.links.awake() {
                self.at = 0;
            }
            let (slot, link) = self.links.at(self.at);
            if link.state != PeerState::Broken {
                match link.reader.take(link.id, inbox) {
                    Ok(Some(bytes)) => {
                        self.unsettled.insert(slot);
                        self.statistics.frames_received += 1;
                        self.statistics.bytes_received += bytes as u64;
                        return true;
                    }
                    Ok(None) => {}
                    Err(ring::Nonsense) => self.break_link(slot),
                }
            }
            self.at += 1;
        }
        false
    }

    /// Takes the messages of a peer from its socket.
    pub(super) fn listen_to(&mut self, id: PathId) {
        // Whatever the messages say, there may be something in the peer's ring, too.
        if self.links.get(id).is_some() {
            self.links.end_doze(links::slot(id));
        }
        for _ in 0..MESSAGES {
            let Some(link) = self.links.get(id).filter(|link| link.state == PeerState::Up) else {
                return;
            };
            let mut bytes = [0; LONGEST + 1];
            let (len, fd) = match link::receive(&link.socket, &mut bytes) {
                ReceivedMessage::Message(len, fd) => (len, fd),
                ReceivedMessage::Nothing => return,
                ReceivedMessage::NoDescriptor => {
                    let why = Limit::Descriptors.refused("taking in memory that was granted");
                    tracing::warn!(peer = %link.name, %why, "its link is taken down");
                    link.state = PeerState::Broken;
                    self.statistics.broken += 1;
                    return self.break_link(links::slot(id));
                }
                ReceivedMessage::End => {
                    link.state = PeerState::Left;
                    return self.leaving.insert(links::slot(id));
                }
            };
            let sense = match (Message::read(&bytes[..len]), fd) {
                (Ok(Message::Bell), None) => true,
                (Ok(Message::GrantTaken), None) if link.granted > 0 => {
                    link.granted -= 1;
                    true
                }
                (Ok(Message::Grant { tag, len }), Some(fd)) if link.waiting < MOST_GRANTS => {
                    link.waiting += 1;
                    let added = self.grants.add(id, tag, fd, len);
                    if let Err(why) = &added {
                        tracing::warn!(peer = %link.name, %why, "what it grants is not mapped");
                    }
                    added.is_ok()
                }
                _ => false,
            };
            if !sense {
                return self.break_link(links::slot(id));
            }
        }
    }

    /// Takes down links whose peers are gone, when all that the peers wrote has been read, and
    /// tells `inbox`. Returns how many records were still to be read.
    #[cold]
    pub(super) fn take_down(&mut self, inbox: &mut impl Inbox) -> usize {
        let mut found = 0;
        self.last.clear();
        while let Some(slot) = self.leaving.pop() {
            let Some(link) = self.links.slot(slot) else { continue };
            let id = link.id;
            // Not more than a ring holds is read: some other process may still write there.
            while link.state == PeerState::Left && found < ring::MOST as usize {
                match link.reader.take(id, inbox) {
                    Ok(Some(bytes)) => {
                        found += 1;
                        self.statistics.frames_received += 1;
                        self.statistics.bytes_received += bytes as u64;
                    }
                    Ok(None) | Err(ring::Nonsense) => break,
                }
            }
            self.last.push((id, link.writer.delivered(link.reader.read())));
            self.links.remove(slot);
            self.grants.forget(id);
            for set in [&mut self.unflushed, &mut self.unsettled, &mut self.untold] {
                set.remove(slot);
            }
            inbox.gone(id);
        }
        for id in self.strays.drain(..) {
            inbox.gone(id);
        }
        found
    }
}
