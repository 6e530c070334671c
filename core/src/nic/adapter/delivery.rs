//! Delivery on lossless devices: what was delivered, and links that are gone.

use crate::encap::PathId;
use crate::nic::adapter::nic::Nic;
use crate::nic::device::outbox::Outbox;
use crate::nic::requests::failure::Cause;
use crate::nic::state::queue_pair::Blamed;

impl Nic {
    /// Completes what a lossless device has [delivered](Outbox::delivered): in every turn, between
    /// the burst and [`transmit`](Self::transmit). Other devices do not need the call.
    // If this were inlined into a loop over packets, it would take registers from that loop.
    #[inline(never)]
    pub fn collect<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        let mut index = 0;
        while let Some(&place) = common.awaiting_delivery.get(index) {
            let pair = pairs[place as usize].as_deref_mut();
            match pair.is_some_and(|pair| pair.collect(pair.delivered_ticket(outbox), common)) {
                true => index += 1,
                false => drop(common.awaiting_delivery.swap_remove(index)),
            }
        }
        if !common.gone_links.is_empty() {
            self.break_gone();
        }
    }

    /// Whether a link was [gone](crate::nic::Inbox::gone) in the last burst. Then what it has
    /// delivered is to be [collected](Self::collect) before the next burst.
    #[inline]
    pub fn has_gone(&self) -> bool {
        !self.common.gone_links.is_empty()
    }

    /// The links that were [gone](crate::nic::Inbox::gone) in the last burst, until what they have
    /// delivered is [collected](Self::collect). A caller that keeps something for such a link drops
    /// it now.
    pub fn links_gone(&self) -> &[PathId] {
        &self.common.gone_links
    }

    /// Breaks the connections by links that are gone.
    #[cold]
    fn break_gone(&mut self) {
        let Self { common, pairs, .. } = self;
        for link in std::mem::take(&mut common.gone_links) {
            for pair in pairs.iter_mut().flatten().filter(|pair| pair.uses_link(link)) {
                pair.break_with(Cause::LinkGone, Blamed::Request(0), common);
            }
        }
    }
}
