//! Connections by `rdma_cm`: `rping`, both ways, and those that do not come about.

use crate::session::Session;
use crate::table::Table;

pub fn make(_: &Session, _: &mut Table) {}
