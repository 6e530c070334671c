//! What a program is told by its peer of what has come, and tells its NIC.

use super::super::model::Check;
use super::Run;

impl Run<'_> {
    /// Some NICs are told what is known to have come.
    pub(super) fn prove_some(&mut self) -> Check {
        if self.program.net.lossless {
            return Ok(());
        }
        for (pair, end) in self.every_end() {
            let flow = &self.flows[pair][end];
            // Behind what is refused, nothing comes that could be known.
            let known = flow.wrong.is_none() && self.sides[pair][1 - end].revoked.is_none();
            let (count, node) = (flow.proven as u32, self.end(pair, end).node);
            if known
                && self.steps.is_multiple_of(3)
                && let Some(ends) = &self.sides[pair][end].ends
            {
                self.fabric.nic(node).acknowledged_by_program(&ends.send, count);
                self.hear(node)?;
            }
        }
        Ok(())
    }
}
