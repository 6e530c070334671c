//! What programs post and what becomes of it: work requests, their memory, completions and events.

pub(crate) mod completion;
pub(crate) mod conversions;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod gather;
pub(crate) mod memory;
pub(crate) mod plain;
pub(crate) mod work_request;
