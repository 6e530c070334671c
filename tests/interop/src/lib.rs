//! Doorbell against the kernel's software RoCE (rdma_rxe), in a small Linux under QEMU.
//!
//! An [`Image`] is made of Debian's packages, a [`Link`] joins a guest to an interface of a network
//! namespace, and a [`Guest`] boots from the one and is at the other end of the other. Then
//! commands run there, while Doorbell is tested here:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use doorbell_interop::{Guest, GuestConfig, Image, Link, or_pass_over};
//! use doorbell_kit::lab;
//!
//! // In a function marked as a test:
//! let Some(image) = or_pass_over(Image::prepare()) else { return };
//! lab::test(|lab| {
//!     let cable = lab.cable("a0", "b0", 9000).unwrap();
//!     // The guest takes the place, and the addresses, of what is in the far namespace.
//!     let link = Link::plug(lab, &cable).unwrap();
//!     let guest = Guest::boot(&image, &GuestConfig::of(&cable.far), &link).unwrap();
//!
//!     let server = guest.start("ibv_rc_pingpong -g 1").unwrap();
//!     server.listens(18515, Duration::from_secs(10)).unwrap();
//!     // Here a client of this side is run.
//!     let output = server.wait(Duration::from_secs(30)).unwrap();
//!     assert!(output.succeeded(), "{output}");
//! });
//! ```
//!
//! It takes no privilege but namespaces, and no KVM. All of it is gone when it is dropped, and when
//! the process ends in whatever way.

#![deny(unsafe_code)]

mod error;
pub mod guest;
mod image;
pub mod link;
mod output;
pub mod packages;
#[allow(unsafe_code)]
mod sys;
mod tools;

pub use error::{Error, or_pass_over};
pub use guest::{Guest, GuestConfig, Running};
pub use image::Image;
pub use link::{Counters, Faults, Link, Stall, Way};
pub use output::Output;
