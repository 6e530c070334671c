//! What a requester knows of missing packets, and which of them it sends again.
//!
//! A packet counts as lost when one that was sent after it has arrived, and it has still not
//! arrived a while later. That while, a round trip at first, is longer than networks reorder
//! packets for, and grows where they do so for longer: reordering alone has nothing sent again.
//! Where nothing was sent after a packet that could arrive, a timer has it sent again.

use std::time::Duration;

use crate::nic::selective::REACH;
use crate::nic::selective::marks::Marks;
use crate::time::Time;
use crate::wire::Psn;

/// The state of a requester between peers with selective repeat: which packets beyond a missing one
/// have arrived, and which are sent again.
pub(crate) struct Repair {
    /// Whether anything is missing, or was sent again and may be under way.
    pub active: bool,
    /// The number behind those that the peer has carried out.
    pub acked: Psn,
    /// Request packets that the peer keeps until a missing one comes.
    there: Marks,
    /// Responses that have come from beyond a missing one.
    answered: Marks,
    /// The results of atomic operations among them.
    results: Vec<(Psn, u64)>,
    /// Request packets that are to be sent again, and responses that are to be requested again.
    lost: Marks,
    /// Packets that were sent or requested again, and may be under way, the latest first.
    again: Vec<Again>,
    /// How often anything was sent again, modulo 2³².
    times: u32,
    /// The newest evidence of what arrives.
    newest: Evidence,
    /// A gap that was noticed: the time at which what is still missing counts as lost, and what had
    /// arrived when the gap was noticed.
    suspicion: Option<(Time, Evidence)>,
    /// The peer's last count of packets that came twice.
    repeated: u8,
    /// How many round trips a packet may be late by before it counts as lost.
    patience: u32,
    /// How many packets were found lost, modulo 2³².
    pub losses: u32,
    /// How many of them there were when the patience last changed.
    judged: u32,
}

/// The newest packets that are known to have arrived. Everything sent before these, and not arrived,
/// is lost or late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Evidence {
    /// The newest request packet that has arrived at the peer.
    there: Sent,
    /// The newest response that has come here.
    answered: Sent,
}

/// When a packet was sent, among others: when the first number that had not been sent was this, and
/// so many packets had been sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    unsent: Psn,
    again: u32,
}

/// Packets that were sent, or requested, again.
struct Again {
    first: Psn,
    len: u32,
    /// Whether responses are waited for, and not that the packet arrives.
    asks: bool,
    sent: Sent,
}

/// The least time that a packet may be late by. It also limits how often what is missing is looked
/// through, whatever a peer reports.
const LEAST_PATIENCE: Duration = Duration::from_micros(20);

/// How many packets ago the last response may have come, at most, while there are only writes: far
/// less than the 2²³ from which on numbers count as newer.
const LONG_AGO: i32 = 1 << 20;

/// The most round trips that a packet may be late by.
const MOST_PATIENCE: u32 = 4;

/// After how many losses that were rightly taken for such less patience is enough.
const RIGHT: u32 = 64;

impl Repair {
    pub fn new() -> Self {
        let zero = Psn::new(0);
        Self {
            active: false,
            acked: zero,
            there: Marks::NONE,
            answered: Marks::NONE,
            results: Vec::new(),
            lost: Marks::NONE,
            again: Vec::new(),
            times: 0,
            newest: Evidence::before(zero),
            suspicion: None,
            repeated: 0,
            patience: 1,
            losses: 0,
            judged: 0,
        }
    }

    /// Begins with everything before `oldest` carried out and answered.
    pub fn begin(&mut self, oldest: Psn) {
        if !self.active {
            self.active = true;
            (self.acked, self.newest) = (oldest, Evidence::before(oldest));
        }
    }

    /// Forgets everything but how patient it has become, and the counts.
    pub fn end(&mut self) {
        let Self { repeated, patience, losses, judged, .. } = *self;
        *self = Self { repeated, patience, losses, judged, ..Self::new() };
    }

    /// How many packets under way take no room in the window, since they have arrived.
    pub fn arrived(&self) -> u32 {
        self.there.count() + self.answered.count()
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// How many packets, or requests for responses, were sent again and may be under way.
    pub fn again_under_way(&self) -> usize {
        let is_under_way = |&&Again { first, len, asks, .. }: &&Again| {
            let has_come = match asks {
                true => (0..len).all(|step| self.answered.has(first.add(step))),
                false => self.has_arrived(first),
            };
            !has_come && !self.lost.has(first)
        };
        self.again.iter().filter(is_under_way).count()
    }

    /// Notes that the peer has carried out everything before `beyond`.
    pub fn carried_out(&mut self, beyond: Psn) {
        let further = beyond.distance_from(self.acked);
        if further > 0 {
            self.there.remove_range(self.acked, further as u32);
            self.acked = beyond;
        }
        // The packet that the peer expects it does not keep. One that was kept, and refused for want
        // of a receive, is to be sent again, and the peer's word of that may have been lost.
        self.there.remove(self.acked);
        self.newest.there.is_at_least(Sent::once(beyond.before()));
    }

    /// Notes that the peer keeps a packet. Returns whether that is news.
    pub fn is_there(&mut self, psn: Psn) -> bool {
        // A report that others have overtaken names what was carried out since, or was refused.
        if psn.distance_from(self.acked) <= 0 {
            return false;
        }
        let new = self.there.insert(psn);
        if new {
            self.lost.remove(psn);
            self.newest.there.is_at_least(Sent::once(psn));
        }
        new
    }

    /// Notes that a response has come. Returns whether that is news.
    pub fn is_answered(&mut self, psn: Psn) -> bool {
        let new = self.answered.insert(psn);
        if new {
            self.lost.remove(psn);
            self.newest.answered.is_at_least(Sent::once(psn));
        }
        new
    }

    pub fn has_answer(&self, psn: Psn) -> bool {
        self.answered.has(psn)
    }

    pub fn keep_result(&mut self, psn: Psn, before: u64) {
        self.results.push((psn, before));
    }

    pub fn take_result(&mut self, psn: Psn) -> Option<u64> {
        let at = self.results.iter().position(|(other, _)| *other == psn)?;
        Some(self.results.swap_remove(at).1)
    }

    /// Notes the packet that came to the peer last. If it was sent again, what was sent before that
    /// is lost or late.
    pub fn came_last(&mut self, psn: Psn) {
        if let Some(again) = self.again.iter().find(|again| again.includes(psn)) {
            self.newest.there.is_at_least(again.sent);
        }
    }

    /// Notes the peer's count of packets that came twice. Where they did, something was sent again
    /// that was not lost, and more patience is needed.
    pub fn came_twice(&mut self, repeated: u8) {
        if std::mem::replace(&mut self.repeated, repeated) != repeated {
            (self.patience, self.judged) = ((self.patience + 1).min(MOST_PATIENCE), self.losses);
        } else if self.losses.wrapping_sub(self.judged) >= RIGHT {
            (self.patience, self.judged) = ((self.patience - 1).max(1), self.losses);
        }
    }

    /// Notes that everything before `oldest` is done with, which was so before `from`.
    pub fn moves_on(&mut self, from: Psn, oldest: Psn) {
        let len = oldest.distance_from(from).max(0) as u32;
        for marks in [&mut self.there, &mut self.answered, &mut self.lost] {
            marks.remove_range(from, len);
        }
        // After half of all numbers without a response, the last one would count as a new one.
        if oldest.distance_from(self.newest.answered.unsent) > LONG_AGO {
            self.newest.answered = Sent::once(oldest.before());
        }
        self.again.retain(|again| again.first.add(again.len).distance_from(oldest) > 0);
    }

    /// Whether nothing is missing any more, as far as is known. What came last may have been sent
    /// behind packets that have not come.
    pub fn is_over(&self, oldest: Psn) -> bool {
        let Evidence { there, answered } = self.newest;
        let first = Sent::once(oldest);
        self.arrived() == 0
            && self.lost.is_empty()
            && self.again.is_empty()
            && self.acked.distance_from(oldest) <= 0
            && !there.is_after(first)
            && !answered.is_after(first)
    }

    /// Returns the first packet from `oldest` on that is to be sent again.
    pub fn next_lost(&self, oldest: Psn) -> Option<Psn> {
        self.lost.first_of(oldest, REACH)
    }

    /// Returns how many of `most` packets from `psn` on are to be requested again.
    pub fn lost_from(&self, psn: Psn, most: u32) -> u32 {
        (1..most.min(REACH)).find(|&step| !self.lost.has(psn.add(step))).unwrap_or(most.min(REACH))
    }

    /// Notes that a packet was sent again when `unsent` had not been sent, or that so many responses
    /// were requested again.
    pub fn sent_again(&mut self, first: Psn, len: u32, asks: bool, unsent: Psn) {
        self.lost.remove_range(first, len);
        self.again.retain(|again| {
            !(first.distance_from(again.first) <= 0
                && again.first.add(again.len).distance_from(first.add(len)) <= 0)
        });
        // The newest stands in front, since it counts where several include a packet.
        self.times = self.times.wrapping_add(1) & Sent::MOST_TIMES;
        let sent = Sent { unsent, again: self.times };
        self.again.insert(0, Again { first, len, asks, sent });
    }

    /// Takes what was sent again for lost again, as far as it is not before `oldest`.
    pub fn forget_again(&mut self, oldest: Psn) {
        let again = std::mem::take(&mut self.again);
        for Again { first, len, .. } in again {
            // A read request that the peer keeps is not missing.
            if !self.there.has(first) {
                let done = oldest.distance_from(first).max(0) as u32;
                self.lose(first.add(done), len.saturating_sub(done));
            }
        }
    }

    /// Has a packet sent again that the peer has refused, and so does not keep any more.
    pub fn refused(&mut self, psn: Psn) {
        self.there.remove(psn);
        self.lost.insert(psn);
    }

    /// Has the oldest packet sent again, with others that are requested together with it.
    pub fn lose_oldest(&mut self, oldest: Psn, len: u32) {
        self.there.remove(oldest);
        self.lose(oldest, len);
    }

    /// Has packets sent again.
    fn lose(&mut self, first: Psn, len: u32) {
        for step in 0..len.min(REACH) {
            let psn = first.add(step);
            if !self.there.has(psn) && !self.answered.has(psn) {
                self.losses = self.losses.wrapping_add(u32::from(self.lost.insert(psn)));
            }
        }
    }

    /// Goes on when something has come, or time has passed: returns whether what is missing is to
    /// be [judged](Self::judge).
    pub fn suspects(&mut self, round_trip: Duration, now: Time) -> Option<Verdict> {
        let patience = round_trip.max(LEAST_PATIENCE) * self.patience;
        let due = self.suspicion.filter(|(at, _)| *at <= now);
        if due.is_some() || self.suspicion.is_none() {
            let known = due.map(|(_, evidence)| evidence);
            let news = known != Some(self.newest);
            self.suspicion = news.then(|| (now + patience, self.newest));
        }
        due.map(|(_, evidence)| Verdict(evidence))
    }

    /// When to go on, if nothing comes before.
    pub fn suspects_at(&self) -> Option<Time> {
        self.suspicion.map(|(at, _)| at)
    }

    /// Finds whether a request packet is lost; if so, so are the `len` responses that it asks for.
    pub fn judge(&mut self, psn: Psn, len: u32, Verdict(evidence): Verdict) {
        let missing = psn.distance_from(self.acked) >= 0 && !self.there.has(psn);
        if missing && !self.lost.has(psn) && evidence.there.is_after(self.sent(psn)) {
            self.lose(psn, len);
        }
    }

    /// Finds which responses of a request that has arrived are lost.
    pub fn judge_responses(&mut self, first: Psn, len: u32, Verdict(evidence): Verdict) {
        for psn in (0..len.min(REACH)).map(|step| first.add(step)) {
            let missing = !self.answered.has(psn) && !self.lost.has(psn);
            if missing && evidence.answered.is_after(self.sent(psn)) {
                self.losses = self.losses.wrapping_add(1);
                self.lost.insert(psn);
            }
        }
    }

    /// Whether a request packet has arrived at the peer.
    pub fn has_arrived(&self, psn: Psn) -> bool {
        psn.distance_from(self.acked) < 0 || self.there.has(psn)
    }

    /// When a packet was last sent.
    fn sent(&self, psn: Psn) -> Sent {
        let again = self.again.iter().find(|again| again.includes(psn));
        again.map_or(Sent::once(psn), |again| again.sent)
    }
}

/// The newest packets that had arrived when a gap was noticed. What was sent before them, and is
/// still missing, is lost.
#[derive(Clone, Copy)]
pub(crate) struct Verdict(Evidence);

impl Verdict {
    /// Whether nothing can be said of a packet, or of those behind it.
    pub fn ends_before(self, psn: Psn) -> bool {
        let Evidence { there, answered } = self.0;
        let sent = Sent::once(psn);
        !there.is_after(sent) && !answered.is_after(sent)
    }
}

impl Evidence {
    /// Evidence of nothing from a number on.
    fn before(psn: Psn) -> Self {
        let sent = Sent::once(psn.before());
        Self { there: sent, answered: sent }
    }
}

impl Sent {
    /// The most that [`again`](Self::again) is where it counts.
    const MOST_TIMES: u32 = (1 << 31) - 1;

    /// When a packet was sent that was sent once: behind all that was sent again when its number
    /// was the first that had not been sent.
    fn once(psn: Psn) -> Self {
        Self { unsent: psn, again: u32::MAX }
    }

    fn is_after(self, other: Self) -> bool {
        match self.unsent.distance_from(other.unsent) {
            0 => self.again > other.again,
            further => further > 0,
        }
    }

    fn is_at_least(&mut self, other: Self) {
        if other.is_after(*self) {
            *self = other;
        }
    }
}

impl Again {
    fn includes(&self, psn: Psn) -> bool {
        let step = psn.distance_from(self.first);
        step >= 0 && (step as u32) < self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psn(number: u32) -> Psn {
        Psn::new(number)
    }

    /// Packets from 10 on are missing, and 10, 12 and 14 were sent again, or requested again.
    fn sent_again(asks: bool) -> Repair {
        let mut repair = Repair::new();
        repair.begin(psn(10));
        for first in [10, 12, 14] {
            repair.lose(psn(first), 1);
            repair.sent_again(psn(first), 1, asks, psn(20));
        }
        repair
    }

    #[test]
    fn what_was_sent_again_takes_room_in_the_window_until_it_has_arrived_or_is_lost() {
        let mut repair = sent_again(false);
        assert_eq!(repair.again_under_way(), 3);
        repair.is_there(psn(14));
        assert_eq!(repair.again_under_way(), 2, "it arrived beyond a gap");
        repair.carried_out(psn(11));
        assert_eq!(repair.again_under_way(), 1, "it was carried out");
        repair.lose(psn(12), 1);
        assert_eq!(repair.again_under_way(), 0, "it is lost again");
    }

    #[test]
    fn a_response_that_was_requested_again_takes_room_until_it_has_come() {
        let mut repair = sent_again(true);
        repair.is_there(psn(14));
        assert_eq!(repair.again_under_way(), 3, "the request has arrived");
        repair.is_answered(psn(14));
        assert_eq!(repair.again_under_way(), 2);
    }
}
