//! The health service: what a server tells load balancers and supervisors about itself, modelled on
//! gRPC's health checking protocol.
//!
//! A program sets statuses through a [`Health`] and gives that to one server. Clients ask for them
//! through a [`HealthClient`], once or as a stream of changes. The folder knows routers and
//! clients, but no server: the server's builder adds the health methods to its router, and a
//! shutdown calls [`Health::shut_down`].

mod client;
mod handle;
mod protocol;
mod table;

pub use client::HealthClient;
pub use handle::Health;
pub use protocol::ServingStatus;
