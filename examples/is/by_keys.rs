//! Ranking keys by sending each to the process that has its range of values.

use doorbell::splitc::{Error, Spread, World};

use crate::problem::{Problem, TESTS};
use crate::ranks::{Ranks, add_up};
use crate::spmd::Stopwatch;

/// Ranks keys where they are sent to.
pub struct ByKeys {
    world: World,
    buckets: usize,
    shift: u32,
    /// Room for the keys that are sent to each process.
    inbox: Spread<u32>,
    /// This process's keys, in the order of their buckets.
    ordered: Vec<u32>,
}

impl ByKeys {
    /// Allocates what ranking needs. A collective call: all processes await it.
    pub async fn new(world: &World, problem: &Problem) -> Result<Self, Error> {
        let room = problem.keys().div_ceil(world.size());
        Ok(Self {
            world: world.clone(),
            buckets: problem.buckets(),
            shift: problem.bucket_shift(),
            // Some processes get a few more keys than the average.
            inbox: world.blocked((room + room / 8) * world.size()).await?,
            ordered: Vec::new(),
        })
    }

    /// Ranks the keys of all processes, as [`Ranker::rank`](crate::ways::Ranker::rank) says.
    pub async fn rank(
        &mut self,
        keys: &[u32],
        tested: [u32; TESTS],
        watch: &mut Stopwatch,
    ) -> Result<(Ranks, [u32; TESTS]), Error> {
        // The tested keys go behind the sizes of the buckets, which all processes must learn.
        let mut own = watch.compute(|| self.sizes(keys));
        own.extend(tested);
        let all = self.world.all_gather_vec(&own).await?;
        let (division, tested) = watch.compute(|| {
            self.order(keys, &own);
            self.divide(&all)
        });
        self.send(&division).await?;

        let rank = self.world.rank();
        let [first, end] = [rank, rank + 1].map(|rank| (division.first[rank] as u32) << self.shift);
        let lesser = division.keys_of[..rank].iter().sum::<usize>() as u32;
        // All stores of all processes have arrived when the private epoch begins.
        let private = self.inbox.private().await?;
        let up_to = watch.compute(|| {
            let mut up_to = vec![0; (end - first) as usize];
            for &key in &private[..division.keys_of[rank]] {
                up_to[(key - first) as usize] += 1;
            }
            add_up(&mut up_to);
            up_to
        });
        drop(private);
        self.inbox.share().await?;
        Ok((Ranks { first, lesser, up_to }, tested))
    }

    /// Frees the shared memory. A collective call: all processes await it.
    pub async fn free(self) -> Result<(), Error> {
        self.inbox.free().await
    }

    /// How many of the keys are in each bucket.
    fn sizes(&self, keys: &[u32]) -> Vec<u32> {
        let mut sizes = vec![0; self.buckets];
        for key in keys {
            sizes[(key >> self.shift) as usize] += 1;
        }
        sizes
    }

    /// Copies the keys to `ordered`, in the order of their buckets, whose sizes are known.
    fn order(&mut self, keys: &[u32], sizes: &[u32]) {
        let mut next = vec![0; self.buckets];
        for bucket in 1..self.buckets {
            next[bucket] = next[bucket - 1] + sizes[bucket - 1];
        }
        self.ordered.resize(keys.len(), 0);
        for &key in keys {
            let next = &mut next[(key >> self.shift) as usize];
            self.ordered[*next as usize] = key;
            *next += 1;
        }
    }

    /// Divides the buckets among the processes, so that each process has about as many keys. `all`
    /// has the sizes of the buckets in each process, and the tested keys behind them.
    fn divide(&self, all: &[Vec<u32>]) -> (Division, [u32; TESTS]) {
        let (size, rank) = (all.len(), self.world.rank());
        let mut totals = vec![0_u32; self.buckets + TESTS];
        for own in all {
            totals.iter_mut().zip(own).for_each(|(total, own)| *total += own);
        }
        let tested = totals.split_off(self.buckets);
        let keys: usize = totals.iter().map(|&total| total as usize).sum();
        let mut division = Division {
            first: vec![0],
            keys_of: vec![0; size],
            before: vec![0; size],
            own: vec![0; size],
        };
        let mut so_far = 0;
        for (bucket, &total) in totals.iter().enumerate() {
            let process = division.first.len() - 1;
            division.keys_of[process] += total as usize;
            division.own[process] += all[rank][bucket] as usize;
            division.before[process] +=
                all[..rank].iter().map(|sizes| sizes[bucket] as usize).sum::<usize>();
            so_far += total as usize;
            if process + 1 < size && so_far >= (process + 1) * keys / size {
                division.first.push(bucket + 1);
            }
        }
        // Where there are more processes than buckets, the last ones have none.
        division.first.resize(size + 1, self.buckets);
        (division, tested.try_into().expect("as many as were sent"))
    }

    /// Sends each key to the process that has its bucket. A collective call: all processes await
    /// it.
    async fn send(&mut self, division: &Division) -> Result<(), Error> {
        let size = self.world.size();
        let most = division.keys_of.iter().copied().max().unwrap_or(0);
        if most * size > self.inbox.len() {
            let larger = self.world.blocked(most * size).await?;
            std::mem::replace(&mut self.inbox, larger).free().await?;
        }
        let room = self.inbox.len() / size;
        let mut rest = &self.ordered[..];
        for (process, &count) in division.own.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (keys, others) = rest.split_at(count);
            rest = others;
            // In the inbox of a process, the keys of process 0 come first, then those of process 1.
            let place = self.inbox.pointer(process * room + division.before[process])?;
            self.world.span(place, count).store(keys)?;
        }
        Ok(())
    }
}

/// The division of the buckets among the processes.
struct Division {
    /// The first bucket of each process, and behind them the number of buckets.
    first: Vec<usize>,
    /// How many keys each process gets from all processes together.
    keys_of: Vec<usize>,
    /// How many of the keys that each process gets come from processes before this one.
    before: Vec<usize>,
    /// How many keys each process gets from this process.
    own: Vec<usize>,
}
