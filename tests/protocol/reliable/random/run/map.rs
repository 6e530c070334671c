//! Memory that is written by packets, or as one's own, whichever is at hand.

use doorbell_core::encap::PathId;

use super::super::model::{Check, ensure};
use super::super::program::Revoked;
use super::Run;

impl Run<'_> {
    /// Maps what each end may write, unless something is to be refused, which would not be there.
    pub(super) fn map_all(&mut self) -> Check {
        if self.program.net.mapped {
            for (pair, end) in self.every_end() {
                if self.flows[pair][end].wrong.is_none() && self.dice.percent(80) {
                    self.map(pair, end)?;
                }
            }
        }
        Ok(())
    }

    /// What is mapped is not any more, or is again.
    pub(super) fn remap_some(&mut self) -> Check {
        if !self.program.net.mapped {
            return Ok(());
        }
        for (pair, end) in self.every_end() {
            let revoked = self.sides[pair][1 - end].revoked.as_ref().map(|&(what, _)| what);
            let may = self.flows[pair][end].wrong.is_none() && revoked != Some(Revoked::Target);
            match self.sides[pair][end].mapped {
                _ if !self.dice.percent(5) => {}
                Some(_) => self.unmap(pair, end)?,
                None if may => self.map(pair, end)?,
                None => {}
            }
        }
        Ok(())
    }

    fn map(&mut self, pair: usize, end: usize) -> Check {
        let target = &self.memory(pair, 1 - end).target;
        let (region, registration) = (target.region.clone(), target.registration);
        let (own, peer) = (self.end(pair, end).node, self.end(pair, 1 - end).node);
        let (link, rkey, base) = (PathId(peer as u32), registration.rkey, registration.address);
        let id = self.fabric.nic(own).map(link, rkey, base, region);
        self.sides[pair][end].mapped = Some(id);
        self.flows[pair][end].mapped = true;
        Ok(())
    }

    pub(super) fn unmap(&mut self, pair: usize, end: usize) -> Check {
        if let Some(id) = self.sides[pair][end].mapped.take() {
            let nic = self.fabric.nic(self.end(pair, end).node);
            ensure!(nic.unmap(id).is_some(), "{id:?} was not mapped");
            ensure!(nic.unmap(id).is_none(), "{id:?} was mapped twice");
        }
        Ok(())
    }
}
