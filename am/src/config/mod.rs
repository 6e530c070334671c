//! Configurations of endpoints and bundles, with the bounds that their values must keep.
//!
//! The folder holds plain data and checks it. It knows nothing of what is built from it.

mod bundle;
mod checks;
mod endpoint;
mod segment;

pub use bundle::BundleConfig;
pub(crate) use endpoint::MOST_TASKS;
pub use endpoint::{EndpointConfig, Flow, Policy};
pub use segment::SegmentMemory;
