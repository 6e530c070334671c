//! Split-phase gets of Split-C, each sent by itself: a request, and an answer with the value.

use std::collections::VecDeque;

use doorbell_logp::Requester;
use doorbell_splitc::{Config, Get, GetAll, GlobalPtr, World};
use doorbell_verbs::Nic;

use super::rounds::{LONGEST, WINDOW, Waiting, measure};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::logp_result::LogpResult;
use crate::perf::layers::splitc::meet;
use crate::perf::layers::verbs::{Guard, progress};
use crate::perf::{Place, Plan};

/// A get that is under way.
enum Coming {
    One(Get<u64>),
    Many(GetAll<u64>),
}

/// The process that gets.
struct Getter {
    world: World,
    theirs: GlobalPtr<u64>,
    coming: VecDeque<Coming>,
    answered: u64,
    waiting: Waiting,
}

impl Requester for Getter {
    type Error = anyhow::Error;

    #[inline]
    fn send(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.coming.len() >= WINDOW {
            self.poll()?;
        }
        let get = match bytes {
            0 => Coming::One(self.world.at(self.theirs).get()?),
            _ => Coming::Many(self.world.span(self.theirs, bytes / 8).get()?),
        };
        self.coming.push_back(get);
        // A message is not to wait for more that could share it.
        Ok(self.world.flush_now()?)
    }

    #[inline]
    fn poll(&mut self) -> anyhow::Result<()> {
        let before = self.answered;
        self.world.poll();
        while let Some(first) = self.coming.pop_front() {
            match first {
                Coming::One(get) if get.is_done() => _ = get.value()?,
                Coming::Many(get) if get.is_done() => _ = get.values()?,
                waits => {
                    self.coming.push_front(waits);
                    break;
                }
            }
            self.answered += 1;
        }
        self.waiting.look(self.answered != before)
    }

    #[inline]
    fn answered(&self) -> u64 {
        self.answered
    }
}

pub async fn run(
    nic: &Nic,
    guard: &Guard,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<(u64, LogpResult)>> {
    let (addresses, key) = meet(nic, peer)?;
    let (carrier, progress) = (plan.carrier, progress(plan, place));
    let config = Config { carrier, progress, key, ..Config::default() };
    let rank = usize::from(!peer.leads());
    let joined = async { Ok(World::join_on(nic, rank, &addresses, &config).await?) };
    let world = guard.run(joined).await?;
    let beat = guard.beat();
    let found = guard.run(async {
        let array = world.blocked::<u64>(2 * LONGEST / 8).await?;
        let theirs = array.pointer((1 - rank) * LONGEST / 8)?;
        let found = match rank {
            0 => {
                let (coming, answered) = (VecDeque::new(), 0);
                let (world, waiting) = (world.clone(), Waiting::default());
                let getter = Getter { world, theirs, coming, answered, waiting };
                let (rounds, known, _) = measure(getter, plan, &beat).await?;
                Some((rounds, known))
            }
            _ => None,
        };
        world.leave().await?;
        Ok(found)
    });
    let found = found.await?;
    peer.meet(|| {
        world.poll();
        Ok(())
    })?;
    Ok(found)
}
