//! Placing data in a peer's segment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Data, Memory};

use super::Peer;
use super::coming::Coming;
use super::credit::credit;
use super::deadline::Deadline;
use super::waiting::{Awaited, found};
use crate::arguments::Room;
use crate::error::SendError;
use crate::kinds::OneWay;
use crate::link::{Link, fragments};
use crate::wire::{Content, MOST_WORDS};

impl Peer {
    /// Places data in the peer's segment, and runs a handler there behind it. What this gives may
    /// be awaited for the data's memory.
    ///
    /// Where there is a credit this is done at once, and other tasks are not let run. Nothing is
    /// copied: of registered memory name a [`Segment`](doorbell_verbs::Segment), which is to be
    /// left alone until then.
    ///
    /// # Errors
    /// When the data does not fit there, or there are more than sixteen words; the peer has gone,
    /// or this is a handler.
    pub async fn place<K: OneWay>(
        &self,
        kind: K,
        arguments: K::Arguments,
        offset: u64,
        data: impl Into<Data>,
    ) -> Result<Placing, SendError> {
        let mut room = Room::new();
        let words = room.content_with(&arguments, &[]).words;
        let place = self.place_for(kind).await?;
        self.link.check_allowed(Content::encoded(&[]))?;
        if words.len() > MOST_WORDS {
            return Err(SendError::Words(words.len()));
        }
        /// The most that the NIC takes at once.
        const MOST: u64 = 1 << 31;
        let (data, link) = (data.into(), &self.link);
        if data.len() > MOST {
            return Err(SendError::Payload { len: data.len() as usize, most: MOST as usize });
        }
        if let Some(right) = link.placing_by_messages() {
            link.locate(&link.send_side(), offset, data.len())?;
            let _right = right.lock().await;
            return carry(link, place, words, offset, data, self.within).await;
        }
        let source = match link.try_place(place, words, offset, data)? {
            Ok(source) => source,
            Err(placed) => {
                let credit = credit(link, &mut Deadline::of(self.within)).await?;
                credit.uses(|| link.place(&mut link.send_side(), place, words, placed))?
            }
        };
        Ok(Placing { link: link.clone(), coming: Coming::by(source), whole: None })
    }
}

/// Places data by messages.
async fn carry(
    link: &Arc<Link>,
    handler: u16,
    words: &[u64],
    offset: u64,
    data: Data,
    within: Option<Duration>,
) -> Result<Placing, SendError> {
    let place = [offset, data.len()];
    credit(link, &mut Deadline::of(within))
        .await?
        .uses(|| link.announce_fragments(handler, words, place))?;
    let mut pieces = fragments(&data, link.longest(), &link.buffers).peekable();
    let mut source = None;
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        source = credit(link, &mut Deadline::of(within))
            .await?
            .uses(|| link.send_fragment(piece, is_last))?;
    }
    drop(pieces);
    let whole = match data {
        Data::Memory(memory) => memory,
        Data::Inline(_) => Memory::None,
    };
    let coming = source.map_or(Coming::nothing(), Coming::by);
    Ok(Placing { link: link.clone(), coming, whole: Some(whole) })
}

/// Data that is being placed. If this is dropped, its memory goes when it comes back.
pub struct Placing {
    link: Arc<Link>,
    coming: Coming<Memory>,
    /// All of it, if what comes back is a piece.
    whole: Option<Memory>,
}

impl Placing {
    /// Waits until all of it is there, and gives the memory back that it came from.
    ///
    /// # Errors
    /// When the peer has gone. Whether the data is there is not known then.
    pub async fn done(mut self) -> Result<Memory, SendError> {
        let whole = self.whole.take();
        if !self.coming.is_due() {
            return Ok(whole.unwrap_or(Memory::None));
        }
        // Of several that are under way most have come when somebody asks.
        let here = self.coming.find(&self.link, &mut self.link.send_side());
        let memory = match here {
            Some(found) => found?,
            None => {
                let deadline = &mut Deadline::of(None);
                let found = found(&self.link, self.coming.hand_on(), deadline).await;
                found.expect("its time is not bounded")?
            }
        };
        Ok(whole.unwrap_or(memory))
    }
}

impl fmt::Debug for Placing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placing").field("peer", &self.link.peer_text()).finish_non_exhaustive()
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if self.coming.is_due() {
            self.coming.leave(&mut self.link.send_side());
        }
    }
}
