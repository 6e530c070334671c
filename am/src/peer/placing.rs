//! Placing data in a peer's segment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Data, Memory};

use super::Peer;
use super::awaitable::Coming;
use super::credit::credit;
use super::deadline::Deadline;
use super::waiting::{Awaited, found};
use crate::arguments::Room;
use crate::error::SendError;
use crate::kinds::OneWay;
use crate::link::{Link, fragments};
use crate::wire::{Content, MOST_WORDS};

impl Peer {
    /// Places data in the peer's segment, and runs a handler there behind it. The returned value
    /// may be awaited to get the data's memory back.
    ///
    /// If there is a credit, the data leaves at once, and other tasks are not let run. Nothing is
    /// copied: name registered memory by a [`Segment`](doorbell_verbs::Segment), and leave the
    /// memory alone until it comes back.
    ///
    /// # Errors
    /// When the data does not fit into the segment, there are more than sixteen words, the peer has
    /// gone, or a handler calls this that does not wait.
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
        /// The most bytes that the NIC takes in one write.
        const MOST: u64 = 1 << 31;
        let (data, link) = (data.into(), &self.link);
        if data.len() > MOST {
            return Err(link.too_long(data.len() as usize, MOST as usize));
        }
        if let Some(right) = link.placing_by_messages() {
            link.locate(&link.send_side(), offset, data.len())?;
            let _right = right.lock().await;
            return place_by_messages(link, place, words, offset, data, self.within).await;
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

/// Places data by messages, each of which takes a credit.
async fn place_by_messages(
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

/// Data that is being placed. If the value is dropped, the data's memory is dropped once it comes
/// back.
pub struct Placing {
    link: Arc<Link>,
    coming: Coming<Memory>,
    /// The memory of the whole, if only its last fragment comes back.
    whole: Option<Memory>,
}

impl Placing {
    /// Waits until all data is in the peer's segment, and returns the memory that it came from.
    ///
    /// # Errors
    /// When the peer has gone. Whether the data has arrived is not known then.
    pub async fn done(mut self) -> Result<Memory, SendError> {
        let whole = self.whole.take();
        if !self.coming.is_due() {
            return Ok(whole.unwrap_or(Memory::None));
        }
        // Fast path: of several placements under way, most are done when somebody asks.
        let here = self.coming.find(&self.link, &mut self.link.send_side());
        let memory = match here {
            Some(found) => found?,
            None => {
                let deadline = &mut Deadline::of(None);
                let found = found(&self.link, self.coming.hand_on(), deadline).await;
                found.expect("a wait without a bound gives a result")?
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
            self.coming.leave(&self.link, &mut self.link.send_side());
        }
    }
}
