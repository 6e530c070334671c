//! Split-C for Tokio.

#![forbid(unsafe_code)]

mod access;
mod arrays;
mod atomics;
mod collectives;
mod config;
mod element;
mod error;
mod fates;
mod functions;
mod global_ptr;
mod heap;
mod landing;
mod messages;
mod peers;
mod run;
mod stores;
mod world;

pub use access::{Done, Get, GetAll, Place, Span};
pub use arrays::{Matrix, Private, Spread};
pub use atomics::Atomic;
pub use collectives::{Begun, Collective, Team, operators};
pub use config::{Carrier, Config};
pub use element::Element;
pub use error::{AccessError, CastError, Error, ErrorKind, Gone, HeapError};
pub use functions::Apply;
pub use global_ptr::GlobalPtr;
pub use run::{BoxError, Job, RunError, run};
pub use world::{JoinError, Membership, World};
