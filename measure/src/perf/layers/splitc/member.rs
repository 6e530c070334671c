//! The two processes of a test, and how they go through the test together.

use std::time::Instant;

use anyhow::ensure;
use doorbell_splitc::World;

use crate::perf::layers::verbs::Beat;
use crate::perf::plan::meter::Meter;
use crate::perf::{Amount, Plan};

/// A process of a test, which has two of them.
pub struct Member<'p> {
    pub world: World,
    pub plan: &'p Plan,
    pub beat: Beat,
}

/// A part of a test, between two checks of what was moved.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// How many pieces came before this one.
    pub number: u64,
    /// How many operations the pieces before this one had.
    pub first: u64,
    /// How many operations this piece has.
    pub operations: u64,
}

/// The amount of a test, and the size of its pieces.
pub struct Course {
    /// The number of operations of the test, or its duration.
    pub amount: Amount,
    /// The most operations of a piece.
    pub longest: u64,
    pub meter: Meter,
}

impl Member<'_> {
    /// Whether the process of this member measures, which is that of rank 0.
    pub fn leads(&self) -> bool {
        self.world.rank() == 0
    }

    /// The rank of the other process.
    pub fn other(&self) -> usize {
        1 - self.world.rank()
    }

    /// A course with the amount that the plan says, in pieces of at most `longest` operations.
    pub fn course(&self, longest: u64) -> Course {
        let meter = if self.leads() { self.plan.meter() } else { Meter::hidden() };
        Course { amount: self.plan.amount, longest, meter }
    }

    /// Runs a test piece by piece. Both processes await `pieces`, each with what it does in a
    /// piece: a function that returns how many values it has found wrong. Both begin each piece at
    /// the same time, but for the latency of a message. Returns how many operations all pieces had.
    pub async fn pieces(
        &self,
        course: &Course,
        mut run: impl AsyncFnMut(Piece) -> anyhow::Result<u64>,
    ) -> anyhow::Result<u64> {
        let began = Instant::now();
        let (mut first, mut wrong) = (0, 0);
        for number in 0.. {
            let wanted = match (self.leads(), course.amount) {
                // The process that follows learns the number of operations from the one that leads.
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

    /// Agrees with the other process on the next piece. The process that leads passes how many
    /// operations the piece has, and each process passes how many values were wrong in the last
    /// piece. Returns the number of operations, or an error if any value was wrong.
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
