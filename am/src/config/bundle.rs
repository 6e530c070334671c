//! The configuration of a bundle.

/// How large a bundle is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BundleConfig {
    /// Receives that may be done and not handled yet, of all endpoints together: as many as they
    /// have receives, or peers are held up. At least 4, and one for each peer of the endpoints.
    pub receives: usize,
    /// Sends that may be done and not looked at: at least 1.
    pub sends: usize,
}

impl Default for BundleConfig {
    /// Room for 4096 of each.
    fn default() -> Self {
        Self { receives: 4096, sends: 4096 }
    }
}
