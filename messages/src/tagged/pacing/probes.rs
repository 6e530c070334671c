//! Probes for messages that senders hold.

use super::{Offer, SearchId};
use crate::matching::{Pattern, Source};

/// The probes that have asked senders for held messages, and what the senders have answered.
#[derive(Debug, Default)]
pub struct Probes {
    asked: Vec<Asked>,
    /// Held messages that were offered to probes, with the patterns of these. Their senders'
    /// messages have not moved on since.
    seen: Vec<(Pattern, Offer)>,
}

/// A probe whose senders have not answered.
#[derive(Debug)]
struct Asked {
    search: SearchId,
    pattern: Pattern,
    senders: Vec<Source>,
}

/// The most probes of different patterns that wait for answers. Those that have waited for longest
/// are forgotten.
const MOST: usize = 16;

impl Probes {
    /// Returns a held message that was offered to a probe of the very pattern, once. A message that
    /// was offered to another may not be the first of those that the pattern takes.
    pub fn take(&mut self, pattern: Pattern) -> Option<Offer> {
        let place = self.seen.iter().position(|(of, _)| *of == pattern)?;
        Some(self.seen.swap_remove(place).1)
    }

    /// Returns whether a probe of a pattern waits for answers.
    pub fn is_asked(&self, pattern: Pattern) -> bool {
        self.asked.iter().any(|asked| asked.pattern == pattern)
    }

    /// Enters a probe that asks some senders. Returns a probe that is forgotten for it, if one is,
    /// with the senders that are to hear so.
    pub fn ask(
        &mut self,
        search: SearchId,
        pattern: Pattern,
        senders: Vec<Source>,
    ) -> Option<(SearchId, Vec<Source>)> {
        let forgotten = (self.asked.len() == MOST).then(|| self.asked.remove(0));
        self.asked.push(Asked { search, pattern, senders });
        forgotten.map(|asked| (asked.search, asked.senders))
    }

    /// Takes in an offer, and returns whether a probe has asked for it.
    pub fn offered(&mut self, offer: Offer) -> bool {
        let asked = self.asked.iter().position(|asked| asked.search == offer.search);
        let Some(place) = asked else { return false };
        let Asked { pattern, senders, .. } = &mut self.asked[place];
        let pattern = *pattern;
        senders.retain(|&sender| sender != offer.envelope.source);
        if senders.is_empty() {
            self.asked.remove(place);
        }
        if self.seen.len() < MOST {
            self.seen.push((pattern, offer));
        }
        true
    }

    /// Forgets what was seen of a sender, since its messages have moved on.
    pub fn moves_on(&mut self, source: Source) {
        if !self.seen.is_empty() {
            self.seen.retain(|(_, offer)| offer.envelope.source != source);
        }
    }

    /// Forgets what a sender was asked, because it holds no messages any more.
    pub fn holds_none(&mut self, source: Source) {
        self.moves_on(source);
        self.asked.retain_mut(|asked| {
            asked.senders.retain(|&sender| sender != source);
            !asked.senders.is_empty()
        });
    }
}
