//! Members: processes that share an interface and are not its owner.

use doorbell_core::wire::ServiceId;

use super::message::{self, LONGEST, Services};
use super::roster::Roster;
use crate::sys::unix::{ReceivedMessage, Socket};

/// The most messages that are heard in one turn.
const MOST_AT_ONCE: usize = 64;

/// A member, connected to the owner.
pub(super) struct Member {
    owner: Socket,
    /// The services that the owner was asked for last.
    asked: Option<Services>,
    /// True if the owner has answered. It is asked again only then.
    answered: bool,
    /// True once the owner has answered for the first time.
    pub known: bool,
}

impl Member {
    pub fn new(owner: Socket) -> Self {
        Self { owner, asked: None, answered: false, known: false }
    }

    /// Takes the owner's messages, and tells the owner what is new here.
    ///
    /// # Errors
    /// When the owner is lost: the reason, in words.
    pub fn turn(&mut self, roster: &mut Roster) -> Result<(), &'static str> {
        self.hear(roster)?;
        // The first message has the services that this process has already, and later ones those
        // that it wants.
        let has = roster.of(roster.own).cloned().unwrap_or_default();
        let ask = if self.asked.is_none() { has } else { roster.wanted.clone() };
        let due = self.asked.is_none() || self.answered && self.asked.as_ref() != Some(&ask);
        // If the message can't be sent, the end of the connection is found by the next look.
        if due && self.owner.send(&message::write(roster.own, Some(&ask)), None).is_ok() {
            (self.asked, self.answered) = (Some(ask), false);
        }
        Ok(())
    }

    /// Takes all messages of the owner, even the last ones of an owner that was killed: the first
    /// sign of its end may come before them.
    fn hear(&mut self, roster: &mut Roster) -> Result<(), &'static str> {
        let (mut bytes, mut ends) = ([0; LONGEST + 1], 0);
        for _ in 0..MOST_AT_ONCE {
            match self.owner.receive(&mut bytes).unwrap_or(ReceivedMessage::End) {
                ReceivedMessage::Nothing => break,
                ReceivedMessage::Message(len, _) => self.learn(roster, &bytes[..len])?,
                ReceivedMessage::NoDescriptor => return Err("it makes no sense"),
                ReceivedMessage::End if ends == 0 => ends += 1,
                ReceivedMessage::End => return Err("it hung up"),
            }
        }
        Ok(())
    }

    /// Acts upon a message of the owner.
    fn learn(&mut self, roster: &mut Roster, said: &[u8]) -> Result<(), &'static str> {
        match message::read(said) {
            Some((tag, Some(granted))) if tag == roster.own => {
                let asked = self.asked.clone().unwrap_or_default();
                roster.judge(&asked, |_, service: ServiceId| granted.contains(&service));
                (self.answered, self.known) = (true, true);
                roster.welcome();
            }
            Some((tag, Some(services))) => roster.enter(tag, services),
            Some((tag, None)) if tag != roster.own => {
                if roster.of(tag).is_some() {
                    roster.leave(tag);
                }
            }
            _ => return Err("it makes no sense"),
        }
        Ok(())
    }
}
