//! Buffers that messages are received into, from the moment they are posted until they are free.
//!
//! The folder is told how many receives are promised to whom, and hands out messages in their
//! buffers. It knows neither links nor handlers.

mod arrival;
mod own;
mod pool;
mod reassembly;
mod received_buffer;
mod spares;

pub(crate) use arrival::Arrival;
pub(crate) use own::OwnReceives;
pub(crate) use pool::Buffers;
pub(crate) use reassembly::{Reassembled, Reassembly};
pub(crate) use received_buffer::{ReceivedBuffer, is_copied};
pub(crate) use spares::{Spares, SparesBySize};
