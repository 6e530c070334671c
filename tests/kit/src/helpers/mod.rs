//! Helpers of any test: the bytes that are allocated, futures that are abandoned, how much is
//! tried, errors with their causes, and inputs for the bodies of fuzz targets.

pub(crate) mod allocator;
pub(crate) mod cancellation;
pub(crate) mod effort;
pub(crate) mod error_chain;
pub(crate) mod fuzz_inputs;
