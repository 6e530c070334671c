//! What is known of the packets of a test: what was found here, and what the other end says it
//! found.

use anyhow::bail;

use super::patience::Patience;

/// The fate of numbered packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// The number of packets that arrived in order, with the contents that they should have.
    pub right: u64,
    /// The number of packets that others overtook, or that never arrived.
    pub lost: u64,
    /// The number of packets with other contents or another length, that arrived late or twice, or
    /// were not packets of the test.
    pub wrong: u64,
    /// The number that the next one will have.
    pub next: u64,
}

impl Tally {
    /// Enters a packet that came.
    #[inline]
    pub fn enter(&mut self, number: u64, right: bool) {
        self.skip(number);
        match right && number == self.next {
            true => self.right += 1,
            false => self.wrong += 1,
        }
        self.next = self.next.max(number + 1);
    }

    /// Counts all packets below a number that have not arrived as lost. Packets are overtaken only
    /// by being lost.
    #[inline]
    pub fn skip(&mut self, number: u64) {
        if number > self.next {
            self.lost += number - self.next;
            self.next = number;
        }
    }

    /// Fails unless every packet came, and was right.
    pub fn judge(&self) -> anyhow::Result<()> {
        let Self { lost, wrong, next, .. } = self;
        if *lost > 0 || *wrong > 0 {
            bail!("of {next} packets {lost} were lost, and {wrong} were not what they should be");
        }
        Ok(())
    }
}

/// A tally as it is reported, and whether it is the last.
pub type Report = [u8; 40];

/// The findings of both ends of a stream.
#[derive(Default)]
pub struct Ledger {
    /// The findings of this end.
    pub here: Tally,
    /// Whether the other end asks for that.
    pub asked: bool,
    /// Whether the other end has sent its last packet.
    pub ended: bool,
    /// The findings of the other end, as it has reported them.
    pub there: Tally,
    /// Whether the other end has received the last packet.
    pub told_all: bool,
    /// Spent since the last report.
    pub patience: Patience,
}

impl Ledger {
    /// Returns the report for the other end.
    pub fn report(&self) -> Report {
        let Tally { right, lost, wrong, next } = self.here;
        let mut report = [0; size_of::<Report>()];
        let words = [right, lost, wrong, next, self.ended.into()];
        for (to, word) in report.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        report
    }

    /// Takes in a report of the other end.
    pub fn hear(&mut self, report: &Report) {
        let mut words = report.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next().unwrap_or(0);
        let tally = Tally { right: word(), lost: word(), wrong: word(), next: word() };
        // An older one may have been overtaken.
        if tally.next >= self.there.next {
            self.there = tally;
            self.told_all |= word() == 1;
            self.patience = Patience::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_late_or_twice_is_told_apart_from_what_is_right() {
        let mut tally = Tally::default();
        for number in [0, 1, 4, 4, 3, 5] {
            tally.enter(number, true);
        }
        assert_eq!(tally, Tally { right: 4, lost: 2, wrong: 2, next: 6 });
        tally.enter(6, false);
        tally.skip(9);
        assert_eq!(tally, Tally { right: 4, lost: 4, wrong: 3, next: 9 });
        assert!(tally.judge().is_err());
    }

    #[test]
    fn a_report_is_heard_as_it_was_made_and_an_older_one_is_not() {
        let (mut one, mut other) = (Ledger::default(), Ledger::default());
        one.here.enter(0, true);
        let old = one.report();
        one.here.enter(2, true);
        one.ended = true;
        other.hear(&one.report());
        other.hear(&old);
        assert_eq!((other.there, other.told_all), (one.here, true));
    }
}
