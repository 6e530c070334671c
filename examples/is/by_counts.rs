//! Ranking keys by counting them where they are, and sending the counts.

use doorbell::splitc::{Error, Spread, World};

use crate::problem::{Problem, TESTS};
use crate::ranks::{Ranks, add_up};
use crate::spmd::Stopwatch;

/// Ranks keys by counting them where they are.
pub struct ByCounts {
    world: World,
    /// How many values each process has in its range; the last ranges may have fewer, or none.
    width: usize,
    /// Room for the counts of each process's range, from all processes: a row from process 0, then
    /// one from process 1, and so on.
    inbox: Spread<u32>,
    /// How many keys of this process have each value.
    counts: Vec<u32>,
}

impl ByCounts {
    /// Allocates what ranking needs. A collective call: all processes await it.
    pub async fn new(world: &World, problem: &Problem) -> Result<Self, Error> {
        let (values, size) = (problem.values(), world.size());
        let width = values.div_ceil(size);
        let inbox = world.blocked(width * size * size).await?;
        // The ranges together have at least as many values as there are.
        Ok(Self { world: world.clone(), width, inbox, counts: vec![0; width * size] })
    }

    /// Ranks the keys of all processes, as [`Ranker::rank`](crate::ways::Ranker::rank) says.
    pub async fn rank(
        &mut self,
        keys: &[u32],
        tested: [u32; TESTS],
        watch: &mut Stopwatch,
    ) -> Result<(Ranks, [u32; TESTS]), Error> {
        let (rank, size, width) = (self.world.rank(), self.world.size(), self.width);
        let counts = &mut self.counts;
        watch.compute(|| {
            counts.fill(0);
            keys.iter().for_each(|&key| counts[key as usize] += 1);
        });
        for (process, counts) in self.counts.chunks(width).enumerate() {
            let place = self.inbox.pointer((process * size + rank) * width)?;
            self.world.span(place, width).store(counts)?;
        }
        // How many keys are in each range, and the tested keys behind them.
        let mut sums = watch
            .compute(|| self.counts.chunks(width).map(|it| it.iter().sum()).collect::<Vec<u32>>());
        sums.extend(tested);
        let mut sums = self.world.all_reduce_vec(&sums, |a, b| a + b).await?;
        let tested = sums.split_off(size);
        // All stores of all processes have arrived when the private epoch begins.
        let private = self.inbox.private().await?;
        let up_to = watch.compute(|| {
            let mut up_to = private[..width].to_vec();
            for row in private.chunks(width).skip(1) {
                up_to.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
            }
            add_up(&mut up_to);
            up_to
        });
        drop(private);
        self.inbox.share().await?;
        let lesser = sums[..rank].iter().sum();
        let tested = tested.try_into().expect("as many as were sent");
        Ok((Ranks { first: (rank * width) as u32, lesser, up_to }, tested))
    }

    /// Frees the shared memory. A collective call: all processes await it.
    pub async fn free(self) -> Result<(), Error> {
        self.inbox.free().await
    }
}
