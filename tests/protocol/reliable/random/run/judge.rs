//! What a round has left, held against the model.

use doorbell_core::nic::{Cause, Failure, KeyError};

use super::super::model::{Check, cause_of, ensure};
use super::super::program::{Mood, Revoked};
use super::Run;

impl Run<'_> {
    /// An end that did not break has sent all, and nothing was wrong with it.
    pub(super) fn judge_alive(&mut self, pair: usize, end: usize) -> Check {
        let flow = &self.flows[pair][end];
        ensure!(flow.failed.is_none(), "{:?}, and pair {pair} is not broken", flow.failed);
        let wrong = flow.wrong;
        ensure!(wrong.is_none(), "{wrong:?} did not break end {end} of pair {pair}");
        let posted = flow.posted;
        self.prove(pair, end, posted)?;
        let (flow, peer) = (&self.flows[pair][end], &self.sides[pair][1 - end]);
        let all = flow.received == flow.takers.len();
        ensure!(
            all || peer.broken.is_some(),
            "of pair {pair}, end {} received {} messages of {}",
            1 - end,
            flow.received,
            flow.takers.len()
        );
        Ok(())
    }

    pub(super) fn check_round(&mut self) -> Check {
        for (pair, end) in self.every_end() {
            let at = |why| format!("end {end} of pair {pair}: {why}");
            self.judge(pair, end).map_err(at)?;
        }
        for (pair, end) in self.every_end() {
            let flow = &self.flows[pair][end];
            let side = &mut self.sides[pair][end];
            let memory = side.memory.as_mut().expect("memory during a round");
            let part = flow.bring_part(&mut memory.fetched);
            part.map_err(|why| format!("at end {end} of pair {pair}: {why}"))?;
            let side = &mut self.sides[pair][1 - end];
            let memory = side.memory.as_mut().expect("memory during a round");
            let effects = flow.effects(memory);
            effects.map_err(|why| format!("from end {end} of pair {pair}: {why}"))?;
            if let Some((what, then)) = &side.revoked {
                let image = memory.image(*what);
                let now = image.now(0, image.region.len());
                ensure!(now == *then, "{what:?} of pair {pair} was revoked, and written after");
            }
        }
        for (pair, end) in self.every_end() {
            self.memory(pair, end).check().map_err(|why| format!("pair {pair}: {why}"))?;
        }
        for node in 0..self.program.nodes {
            self.traps[node].check(node)?;
        }
        Ok(())
    }

    /// Whether what broke an end may have, and its completions say so.
    fn judge(&mut self, pair: usize, end: usize) -> Check {
        let Some(cause) = self.sides[pair][end].broken else {
            return Err("it did not break, though told to".into());
        };
        let [out, into] = [&self.flows[pair][end], &self.flows[pair][1 - end]];
        ensure!(out.all_told() && into.all_told(), "not every request has completed");
        if out.failed.is_none() {
            let memory = self.sides[pair][end].memory.as_mut().expect("memory during a round");
            let flow = &mut self.flows[pair][end];
            flow.complete(flow.posted, &mut memory.fetched)?;
        }
        let [out, _] = [&self.flows[pair][end], &self.flows[pair][1 - end]];
        let blames_send = match cause {
            Cause::Told => {
                ensure!(self.sides[pair][end].told, "nobody told it to stop");
                false
            }
            Cause::LocalProtection { .. } => {
                let wrong = out.wrong.is_some_and(|wrong| wrong.sender == cause);
                let lost = |what| self.lost(pair, end, what, cause);
                wrong || lost(Revoked::Source) || lost(Revoked::Fetched)
            }
            Cause::TooLong { .. } | Cause::Access(_) => false,
            Cause::InvalidRequest | Cause::NotGranted => false,
            _ => true,
        };
        self.permitted(pair, end, cause)?;
        let [out, into] = [&self.flows[pair][end], &self.flows[pair][1 - end]];
        let messages = &out.stream.messages;
        ensure!(
            out.broke.is_some() == blames_send,
            "broken by {cause:?}, and message {:?} was to blame",
            out.broke
        );
        ensure!(
            out.failed.is_none_or(|(_, failure)| cause_of(failure) == cause),
            "{:?}, and the queue pair by {cause:?}",
            out.failed
        );
        if let Some(wrong) = out.wrong.filter(|wrong| blames_send && wrong.sender == cause) {
            ensure!(out.broke == Some(wrong.index), "{:?} instead of {wrong:?}", out.broke);
        }
        if let (Some(index), Cause::ReceiverNotReady { .. }) = (out.broke, cause) {
            ensure!(messages[index].takes_receive(), "message {index} needs no receive");
        }
        let refused = into.wrong.filter(|wrong| wrong.receiver == Some(cause));
        if let Some(failure) = into.receive_failed {
            let revoked = self.lost(pair, end, Revoked::Landing, cause);
            let blamed = (refused.is_some() || revoked)
                && matches!(cause, Cause::TooLong { .. } | Cause::LocalProtection { .. });
            let broke = failure == Failure::Broke(cause);
            let flushed = failure == Failure::Flushed(cause);
            ensure!(
                if blamed { broke } else { flushed },
                "a receive failed with {failure:?}, and the queue pair by {cause:?}"
            );
        }
        if let Some(wrong) = refused {
            let before = into.takers.iter().filter(|&&taker| taker < wrong.index).count();
            ensure!(into.received == before, "{} of {before} were received", into.received);
            self.prove(pair, 1 - end, wrong.index)?;
        }
        Ok(())
    }

    /// Whether an end broke because this was taken from it.
    fn lost(&self, pair: usize, end: usize, what: Revoked, cause: Cause) -> bool {
        let side = &self.sides[pair][end];
        let mut registrations = self.memory(pair, end).registrations(what).into_iter();
        side.revoked.as_ref().is_some_and(|(revoked, _)| *revoked == what)
            && match (what, cause) {
                (
                    Revoked::Source | Revoked::Fetched | Revoked::Landing,
                    Cause::LocalProtection { why, .. },
                ) => registrations.any(|own| why == KeyError::Unknown(own.lkey.0)),
                (Revoked::Target | Revoked::Library | Revoked::Words, Cause::Access(why)) => {
                    registrations.any(|own| why == KeyError::Unknown(own.rkey.0))
                }
                _ => false,
            }
    }

    /// Whether an end broke because something was taken from either.
    fn revoked(&self, pair: usize, end: usize, cause: Cause) -> bool {
        let peers = self.sides[pair][1 - end].revoked.as_ref().map(|(what, _)| *what);
        Revoked::ALL.into_iter().any(|what| self.lost(pair, end, what, cause))
            || match peers {
                Some(Revoked::Target | Revoked::Library | Revoked::Words) => {
                    cause == Cause::PeerAccess
                }
                Some(Revoked::Landing) => cause == Cause::PeerOperation,
                _ => false,
            }
    }

    /// Whether there was a reason for an end to break so.
    fn permitted(&self, pair: usize, end: usize, cause: Cause) -> Check {
        let [out, into] = [&self.flows[pair][end], &self.flows[pair][1 - end]];
        let (own, peer) = (self.end(pair, end), self.end(pair, 1 - end));
        let sent_wrong = out.wrong.is_some_and(|wrong| wrong.sender == cause);
        let got_wrong = into.wrong.is_some_and(|wrong| wrong.receiver == Some(cause));
        let peer_broke = self.sides[pair][1 - end].broken.is_some();
        let lossless = self.program.net.lossless;
        let impatient = self.program.mood == Mood::Impatient;
        let reason = match cause {
            Cause::Told => true,
            Cause::NoAnswer { tries } | Cause::NoProgress { tries } => {
                let all = if lossless { 1 } else { own.retries + 1 };
                tries == all && (impatient && !lossless || peer_broke)
            }
            Cause::ReceiverNotReady { tries, wait } => {
                own.rnr_retries < 7 && tries == own.rnr_retries + 1 && wait == peer.not_ready
            }
            // A device that can't lose has a broken queue pair refuse what comes, and its NIC what
            // comes for one that was taken down.
            Cause::PeerOperation if lossless && peer_broke => true,
            _ => sent_wrong || got_wrong || self.revoked(pair, end, cause),
        };
        ensure!(reason, "{cause:?} for no reason (messages {:?} and {:?})", out.wrong, into.wrong);
        Ok(())
    }

    /// What the NICs counted must fit what the network did to their frames.
    pub(super) fn check_counters(&mut self) -> Check {
        let network = self.fabric.counters();
        let gaps = network.lost
            + network.corrupted
            + network.tail_dropped
            + network.duplicated
            + 2 * network.reordered;
        let mut refused = 0;
        for node in 0..self.program.nodes {
            let counters = *self.fabric.nic(node).counters();
            refused += counters.sequence_naks_sent;
            // What was corrupted on one cable may be copied on the next.
            let corrupted = match network.corrupted {
                0 => 0,
                some => some + network.duplicated + network.flooded,
            };
            let strange = counters.malformed
                + counters.strangers
                + counters.other_partition
                + counters.wrong_service;
            ensure!(strange <= corrupted, "strange packets at node {node}: {counters:?}");
        }
        ensure!(refused <= gaps, "{refused} refusals because of {gaps} gaps");
        Ok(())
    }
}
