//! Going around links that are full.
//!
//! A device that loses nothing has room for each link of its own, and a peer may stop reading: then
//! what is for it waits, and nothing else does. Within a turn, what a link had no room for once is
//! not tried again, so that nothing overtakes it; and each that waits is tried in turn, since one
//! packet may find room where another did not.
//!
//! All of this is apart from the way of most, whose links are not full.

use crate::encap::PathId;
use crate::nic::adapter::nic::Nic;
use crate::nic::adapter::sending::serve;
use crate::nic::device::outbox::Outbox;
use crate::nic::state::delivery_failures::LINKS;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::turns::{Answered, QUANTUM};

impl Nic {
    /// Answers first, where some found no room in the last turn, and then sends.
    #[cold]
    #[inline(never)]
    pub(crate) fn catch_up<O: Outbox>(&mut self, outbox: &mut O) {
        self.answer(outbox);
        self.send_around(outbox);
    }

    /// Goes on sending when the link of a queue pair was found full.
    #[cold]
    #[inline(never)]
    pub(crate) fn stopped_at<O: Outbox>(&mut self, place: u32, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        if !common.lossless {
            return common.active.push_back(place);
        }
        common.full.stopped.push(place);
        if let Some(link) = pairs[place as usize].as_deref().and_then(|pair| pair.link()) {
            common.full.add(link);
        }
        self.send_around(outbox);
    }

    /// Has all send whose links are not full. Those that were stopped go behind those that were not
    /// tried: nobody keeps a link to itself.
    fn send_around<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.active.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            let link = pair.link();
            if link.is_some_and(|link| common.full.has(link)) {
                common.full.aside.push_back(place);
                continue;
            }
            if serve(pair, common, outbox) {
                continue;
            }
            common.full.stopped.push(place);
            if !common.lossless {
                break;
            }
            if let Some(link) = link {
                common.full.add(link);
            }
        }
        common.active.extend(common.full.aside.drain(..));
        common.active.extend(common.full.stopped.drain(..));
    }

    /// Goes on answering when the device, or the link of the first that is to be answered, was
    /// found full.
    #[cold]
    #[inline(never)]
    pub(crate) fn answer_around<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        common.behind = true;
        if !common.lossless {
            return;
        }
        for _ in 0..common.answers.len() {
            let Some(place) = common.answers.pop_front() else { break };
            let Some(pair) = pairs.get_mut(place as usize).and_then(Option::as_deref_mut) else {
                if place == LINKS {
                    common.tell_links(pairs, outbox);
                }
                continue;
            };
            let link = pair.link();
            if link.is_some_and(|link| common.full.has(link)) {
                common.answers.push_back(place);
                continue;
            }
            match pair.answer(common, outbox, QUANTUM) {
                Answered::All => pair.responder.listed = false,
                Answered::Some => common.answers.push_back(place),
                Answered::DeviceFull => {
                    common.answers.push_back(place);
                    link.into_iter().for_each(|link| common.full.add(link));
                }
            }
        }
    }

    /// Whose peers are still to be refused something, or links to be told of packets that nobody
    /// took: until then, a lossless device does not tell them how far this NIC has come.
    #[inline]
    pub fn owes(&self) -> impl Fn(PathId) -> bool {
        let any = self.common.answers.iter().any(|&place| self.refuses(place));
        move |link| any && self.refuses_by(link)
    }

    fn refuses(&self, place: u32) -> bool {
        let pair = self.pairs.get(place as usize).and_then(Option::as_deref);
        place == LINKS || pair.is_some_and(QueuePair::refuses)
    }

    #[cold]
    fn refuses_by(&self, link: PathId) -> bool {
        let mut places = self.common.answers.iter().filter(|&&place| self.refuses(place));
        places.any(|&place| match self.pairs.get(place as usize).and_then(Option::as_deref) {
            Some(pair) => pair.link() == Some(link),
            None => self.common.notices.are_for(link),
        })
    }
}
