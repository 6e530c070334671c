//! One who shares an interface and is not its owner.

use doorbell_core::wire::ServiceId;

use super::message::{self, LONGEST, Services};
use super::roll::Roll;
use crate::sys::unix::{Received, Socket};

/// The most messages that are heard in one turn.
const MOST_AT_ONCE: usize = 64;

pub(super) struct Member {
    owner: Socket,
    /// What the owner was asked for last, and whether it has answered. It is asked again only then.
    asked: Option<Services>,
    answered: bool,
    /// Whether it has ever answered.
    pub known: bool,
}

impl Member {
    pub fn new(owner: Socket) -> Self {
        Self { owner, asked: None, answered: false, known: false }
    }

    /// Hears the owner, and tells it what is new here.
    ///
    /// # Errors
    /// When it is the owner no more: in words, why.
    pub fn turn(&mut self, roll: &mut Roll) -> Result<(), &'static str> {
        self.hear(roll)?;
        // At first it is told what this process has already; then what it wants.
        let has = roll.of(roll.own).cloned().unwrap_or_default();
        let ask = if self.asked.is_none() { has } else { roll.wanted.clone() };
        let due = self.asked.is_none() || self.answered && self.asked.as_ref() != Some(&ask);
        // If it can't be sent, the end of the connection is still to be heard.
        if due && self.owner.send(&message::write(roll.own, Some(&ask)), None).is_ok() {
            (self.asked, self.answered) = (Some(ask), false);
        }
        Ok(())
    }

    /// Hears all that the owner has said, the last words of one that was killed as well: the first
    /// sign of its end may come before them.
    fn hear(&mut self, roll: &mut Roll) -> Result<(), &'static str> {
        let (mut bytes, mut ends) = ([0; LONGEST + 1], 0);
        for _ in 0..MOST_AT_ONCE {
            match self.owner.receive(&mut bytes).unwrap_or(Received::End) {
                Received::Nothing => break,
                Received::Message(len, _) => self.learn(roll, &bytes[..len])?,
                Received::NoDescriptor => return Err("it makes no sense"),
                Received::End if ends == 0 => ends += 1,
                Received::End => return Err("it hung up"),
            }
        }
        Ok(())
    }

    fn learn(&mut self, roll: &mut Roll, said: &[u8]) -> Result<(), &'static str> {
        match message::read(said) {
            Some((tag, Some(granted))) if tag == roll.own => {
                let asked = self.asked.clone().unwrap_or_default();
                roll.judge(&asked, |_, service: ServiceId| granted.contains(&service));
                (self.answered, self.known) = (true, true);
                roll.welcome();
            }
            Some((tag, Some(services))) => roll.enter(tag, services),
            Some((tag, None)) if tag != roll.own => {
                if roll.of(tag).is_some() {
                    roll.leave(tag);
                }
            }
            _ => return Err("it makes no sense"),
        }
        Ok(())
    }
}
