//! Layouts of a fabric: how nodes, switches and cables are put together in the experiments that the
//! literature has.

use super::{Fabric, NodeId};
use crate::ids::{LinkId, SwitchId};
use crate::parts::config::{LinkConfig, SwitchConfig};

/// Nodes at one switch.
#[derive(Clone, Debug)]
pub struct Star {
    /// The nodes, in the order of their cables.
    pub nodes: Vec<NodeId>,
    /// The cable of each node, whose first end is the node.
    pub cables: Vec<LinkId>,
    /// The switch between them.
    pub switch: SwitchId,
}

/// Nodes at leaf switches, each of which has a cable to each spine switch.
#[derive(Clone, Debug)]
pub struct LeafSpine {
    /// The nodes, those of the first leaf first.
    pub nodes: Vec<NodeId>,
    /// The cables of each leaf to the spines, in the order of the spines.
    pub uplinks: Vec<Vec<LinkId>>,
}

/// The sizes of a [`LeafSpine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafSpineSize {
    /// How many leaf switches there are.
    pub leaves: usize,
    /// How many nodes each leaf has.
    pub nodes: usize,
    /// How many spine switches there are.
    pub spines: usize,
}

impl Fabric {
    /// Adds `count` nodes, and a switch to which each has a cable. The switch knows where they are.
    pub fn star(&mut self, count: usize, cable: LinkConfig, switch: SwitchConfig) -> Star {
        let switch = self.network.switch(switch);
        let nodes: Vec<_> = (0..count).map(|_| self.node()).collect();
        let cables = nodes.iter().map(|&node| {
            let cable = self.network.link(self.station(node), switch, cable);
            self.network.add_route(switch, self.address(node), &[cable]);
            cable
        });
        Star { cables: cables.collect(), nodes, switch }
    }

    /// Adds switches in two tiers, and nodes at the lower tier. A frame to a node at another leaf
    /// goes by the spine that the frame's flow chooses: its addresses and UDP ports.
    pub fn leaf_spine(
        &mut self,
        size: LeafSpineSize,
        cable: LinkConfig,
        switch: SwitchConfig,
    ) -> LeafSpine {
        let [leaves, spines] = [size.leaves, size.spines]
            .map(|count| (0..count).map(|_| self.network.switch(switch)).collect::<Vec<_>>());
        let uplinks: Vec<Vec<_>> = leaves
            .iter()
            .map(|&leaf| spines.iter().map(|&up| self.network.link(leaf, up, cable)).collect())
            .collect();
        let mut nodes = Vec::new();
        for (at, &leaf) in leaves.iter().enumerate() {
            for _ in 0..size.nodes {
                let node = self.node();
                let (station, address) = (self.station(node), self.address(node));
                let own = self.network.link(station, leaf, cable);
                self.network.add_route(leaf, address, &[own]);
                for (other, &elsewhere) in
                    leaves.iter().enumerate().filter(|(other, _)| *other != at)
                {
                    self.network.add_route(elsewhere, address, &uplinks[other]);
                }
                for (&spine, down) in spines.iter().zip(&uplinks[at]) {
                    self.network.add_route(spine, address, &[*down]);
                }
                nodes.push(node);
            }
        }
        LeafSpine { nodes, uplinks }
    }
}
