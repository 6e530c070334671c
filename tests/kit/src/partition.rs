//! Which stations can't reach each other, whatever the cables.

use crate::network::StationId;

/// Divides the stations: frames go only between those on the same side of every partition.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sides {
    /// The part that each station is in. Part 0 is what is in no partition's set, and where
    /// stations that are added later find themselves.
    part: Vec<u32>,
    parts: u32,
}

impl Sides {
    pub(crate) fn add_station(&mut self) {
        self.part.push(0);
    }

    /// Takes the stations of the set out of the parts that they are in, into new ones.
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
