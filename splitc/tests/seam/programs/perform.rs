//! Running a program as one of its processes.

use doorbell_simulation::Luck;
use doorbell_splitc::{Carrier, Error, Spread, World, operators};

use crate::programs::kinds::Way;
use crate::programs::objects::{Later, Object, define, make};
use crate::programs::plan::{Does, End, Maker, Op, Phase, Writing};

/// A process that runs a program.
struct Running<'w> {
    world: &'w World,
    objects: Vec<Option<Box<dyn Object>>>,
    /// A count for each process, of signals that came behind data.
    signals: Spread<u64>,
    /// How many signals each process has got.
    signalled: Vec<u64>,
    /// Whether to sync behind each operation, so that no call waits for room.
    alone: bool,
}

/// Runs the program of a seed. If processes share a thread, they are to be told so by `alone`.
pub async fn program(
    world: &World,
    seed: u64,
    carriers: Vec<Carrier>,
    phases: usize,
    alone: bool,
) -> Result<(), Error> {
    let processes = world.size();
    let mut maker = Maker { luck: Luck::new(seed), processes, carriers, objects: Vec::new() };
    define(world).await?;
    let signals = world.spread(processes).await?;
    let signalled = vec![0; processes];
    let mut running = Running { world, objects: Vec::new(), signals, signalled, alone };
    for _ in 0..phases {
        let phase = maker.phase();
        running.phase(&phase).await?;
    }
    for object in running.objects.iter().flatten() {
        object.check_all().await?;
    }
    assert_eq!(world.refused(), 0);
    world.barrier().await
}

impl Running<'_> {
    async fn phase(&mut self, phase: &Phase) -> Result<(), Error> {
        let (world, own) = (self.world, self.world.rank());
        for (rank, carrier) in phase.carriers[own].iter().enumerate() {
            if let Some(carrier) = *carrier {
                world.set_carrier(rank, carrier)?;
            }
        }
        let sum = world.all_reduce(own as u64, operators::sum).begin()?;
        if let Some(new) = &phase.new {
            self.objects.push(Some(make(world, new).await?));
        }
        if let Some(object) = phase.free.and_then(|free| self.objects[free].take()) {
            object.free().await?;
        }
        if let Some((object, draw)) = phase.private {
            self.object(object).in_private(draw).await?;
        }
        for round in &phase.ops[own] {
            self.round(round).await?;
        }
        self.note_what_others_do(phase);
        self.await_signals(phase).await?;
        self.end(phase).await?;
        assert_eq!(sum.done().await?, (0..world.size() as u64).sum());
        if let Some(colours) = phase.teams {
            self.teams(colours).await?;
        }
        Ok(())
    }

    fn object(&self, number: usize) -> &dyn Object {
        self.objects[number].as_deref().expect("it was not freed")
    }

    /// Runs the operations of a round, and syncs.
    async fn round(&self, round: &[Op]) -> Result<(), Error> {
        let mut later: Vec<Later> = Vec::new();
        for op in round {
            later.extend(self.object(op.object).perform(op, &self.signals).await?);
            if self.alone {
                self.world.sync().await?;
            }
        }
        self.world.sync().await?;
        later.into_iter().try_for_each(|later| later(self.world))?;
        round.iter().for_each(|op| self.object(op.object).note(op));
        Ok(())
    }

    fn note_what_others_do(&self, phase: &Phase) {
        for (by, rounds) in phase.ops.iter().enumerate().filter(|(by, _)| *by != self.world.rank())
        {
            let _ = by;
            rounds.iter().flatten().for_each(|op| self.object(op.object).note(op));
        }
    }

    /// Waits for all signals of a phase, behind which the data is in place.
    async fn await_signals(&mut self, phase: &Phase) -> Result<(), Error> {
        let own = self.world.rank();
        let signals = phase.ops.iter().flatten().flatten();
        let signals: Vec<_> =
            signals.filter(|op| op.does == Does::Write(Writing::Signal)).collect();
        signals.iter().for_each(|op| self.signalled[op.to] += 1);
        let expected = self.signalled[own];
        assert_eq!(self.signals.at(own).wait_until(|count| count >= expected).await?, expected);
        for op in signals.into_iter().filter(|op| op.to == own) {
            self.object(op.object).check(op).await?;
        }
        Ok(())
    }

    async fn end(&self, phase: &Phase) -> Result<(), Error> {
        let world = self.world;
        match phase.end {
            End::SyncAndBarrier => world.barrier().await,
            End::SplitBarrier => world.arrive()?.done().await,
            End::AllStoreSync => world.all_store_sync().await,
            End::StoreSync => {
                world.store_sync(self.stored_here(phase)).await?;
                world.barrier().await
            }
        }
    }

    /// How many bytes are stored in this process in a phase.
    fn stored_here(&self, phase: &Phase) -> u64 {
        let stores = |op: &&Op| match op.does {
            Does::Write(writing) => writing.is_store(),
            Does::Change(_, way) => way == Way::Stored,
            _ => false,
        };
        let all = phase.ops.iter().flatten().flatten().filter(|op| op.to == self.world.rank());
        all.filter(stores)
            .map(|op| (op.slots().count() * self.object(op.object).size()) as u64)
            .sum()
    }

    /// Reduces something in teams.
    async fn teams(&self, colours: u32) -> Result<(), Error> {
        let (rank, size) = (self.world.rank() as u32, self.world.size() as u32);
        let colour = rank % (colours + 1);
        let team = self.world.split((colour < colours).then_some(colour), size - rank).await?;
        assert_eq!(team.is_some(), colour < colours);
        let Some(team) = team else { return Ok(()) };
        let members: Vec<_> =
            (0..size).rev().filter(|other| other % (colours + 1) == colour).collect();
        assert_eq!(team.all_gather(rank).await?, members);
        assert_eq!(team.scan(1_u32, operators::sum).await?, team.rank() as u32 + 1);
        for (at, member) in members.iter().enumerate() {
            assert_eq!(team.world_rank(at)?, *member as usize);
        }
        team.leave().await;
        Ok(())
    }
}
