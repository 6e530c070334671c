//! A process of a test, and how the two go through the test together.

use std::time::Instant;

use anyhow::ensure;
use doorbell_splitc::World;

use crate::perf::meter::Meter;
use crate::perf::verbs::Beat;
use crate::perf::{Amount, Plan};

/// One of the two processes of a test.
pub struct Member<'p> {
    pub world: World,
    pub plan: &'p Plan,
    pub beat: Beat,
}

/// A piece of a test.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// How many pieces were before.
    pub number: u64,
    /// How many operations were in the pieces before.
    pub first: u64,
    /// How many operations this piece has.
    pub operations: u64,
}

/// How much of a test there is, and in which pieces.
pub struct Course {
    /// How many operations there are, or for how long.
    pub amount: Amount,
    /// The most operations of a piece.
    pub longest: u64,
    pub meter: Meter,
}

impl Member<'_> {
    /// Whether this process measures.
    pub fn leads(&self) -> bool {
        self.world.rank() == 0
    }

    /// The rank of the other process.
    pub fn other(&self) -> usize {
        1 - self.world.rank()
    }

    /// A course of as many operations as the plan says, or as long.
    pub fn course(&self, longest: u64) -> Course {
        let meter = if self.leads() { self.plan.meter() } else { Meter::hidden() };
        Course { amount: self.plan.amount, longest, meter }
    }

    /// Runs a test piece by piece. Both processes await this, with what each does in a piece: it
    /// returns how many values it has found wrong. Both begin each piece at the same time, but for
    /// the way of a message. The result is how many operations all pieces had.
    pub async fn pieces(
        &self,
        course: &Course,
        mut run: impl AsyncFnMut(Piece) -> anyhow::Result<u64>,
    ) -> anyhow::Result<u64> {
        let began = Instant::now();
        let (mut first, mut wrong) = (0, 0);
        for number in 0.. {
            let wanted = match (self.leads(), course.amount) {
                // Whoever follows is told how many there are.
                (false, _) => 0,
                (true, Amount::Times(times)) => course.longest.min(times - first),
                (true, Amount::For(time)) if number > 0 && began.elapsed() >= time => 0,
                (true, Amount::For(_)) => course.longest,
            };
            let operations = self.next_piece(wanted, wrong).await?;
            if operations == 0 {
                break;
            }
            wrong = run(Piece { number, first, operations }).await?;
            first += operations;
            course.meter.at(first, began.elapsed());
        }
        Ok(first)
    }

    /// Tells the other process how many operations the next piece has, if this one leads, and how
    /// many values were wrong in the last piece. Returns how many operations there are.
    async fn next_piece(&self, operations: u64, wrong: u64) -> anyhow::Result<u64> {
        let both = |[operations, wrong]: [u64; 2], [wanted, more]: [u64; 2]| {
            [operations.max(wanted), wrong.saturating_add(more)]
        };
        let [operations, wrong] = self.world.all_reduce([operations, wrong], both).await?;
        self.beat.count();
        ensure!(wrong == 0, "{wrong} values are not what they should be");
        Ok(operations)
    }
}
