//! Partitions of the network: which stations can't reach each other, whatever the cables.

use crate::ids::StationId;

/// The partitions in force. Frames go only between stations on the same side of every partition.
#[derive(Clone, Default, Debug)]
pub(crate) struct Partitions {
    /// The part of each station. Part 0 has the stations that are in no partition's set, and those
    /// that are added later.
    part: Vec<u32>,
    parts: u32,
}

impl Partitions {
    pub(crate) fn add_station(&mut self) {
        self.part.push(0);
    }

    /// Moves the stations of a set from their parts into new parts.
    pub(crate) fn divide(&mut self, set: &[StationId]) {
        let mut inside = vec![false; self.part.len()];
        for station in set {
            inside[station.index()] = true;
        }
        let mut renamed: Vec<(u32, u32)> = Vec::new();
        for (part, _) in self.part.iter_mut().zip(inside).filter(|(_, inside)| *inside) {
            let known = renamed.iter().find(|(old, _)| old == part).map(|(_, new)| *new);
            *part = known.unwrap_or_else(|| {
                self.parts += 1;
                renamed.push((*part, self.parts));
                self.parts
            });
        }
    }

    pub(crate) fn heal(&mut self) {
        self.part.fill(0);
        self.parts = 0;
    }

    pub(crate) fn are_apart(&self, a: StationId, b: StationId) -> bool {
        self.part[a.index()] != self.part[b.index()]
    }
}
