//! Doorbell's protocol: NICs on a simulated network with faults; the exchanges of other
//! implementations, recorded and played again; programs of others that judge the frames.

mod allocation;
mod captures;
mod golden;
mod judges;
mod regions;
mod reliable;
