//! Memory protection: domains, registrations, keys and rights.

pub(crate) mod key_table;
pub(crate) mod mappings;
pub(crate) mod registration;
pub(crate) mod rights;
pub(crate) mod segment;
