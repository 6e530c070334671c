//! The seam: how fast can the protocol be that is to be written?
//!
//! An RDMA write goes from a program through a work queue, a NIC, a device and the kernel to
//! another process, and its arrival is seen by a future on Tokio: with every part in the shape
//! that the product is to have, and beside it, in the same minutes on the same processors, the
//! plainest loop that does nothing but move the frame.
//!
//! ```text
//! cargo bench -p doorbell-core --bench seam              three rounds of everything
//! cargo bench -p doorbell-core --bench seam -- ethernet --rounds 1
//! cargo bench -p doorbell-core --bench seam -- shm
//! ```
//!
//! It makes two network namespaces and a pair of interfaces between them, which vanish with its
//! processes; that needs root, or user namespaces, and the command `ip`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock; the protocol does not")]

mod device;
mod ethernet;
mod floor;
mod lock;
mod meet;
mod nic;
mod port;
mod report;
mod run;
mod shm;
mod sys;
mod traffic;
mod virtio;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run::main(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seam: {error}");
            ExitCode::FAILURE
        }
    }
}
