//! The configuration of a bundle.

/// The configuration of a bundle, which says how large its queues are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BundleConfig {
    /// The most receives of all endpoints together that may be completed and not handled yet: at
    /// least 4. There is room for more once the endpoints have as many peers. Peers are held up if
    /// there are fewer than the endpoints have receives.
    pub receives: usize,
    /// The most sends that may be completed and not looked at: at least 1.
    pub sends: usize,
}

impl Default for BundleConfig {
    /// Returns a configuration with room for 4096 receives and 4096 sends.
    fn default() -> Self {
        Self { receives: 4096, sends: 4096 }
    }
}
