//! The conformance suite of devices: tests of what every device must do, run for each device.
//!
//! To have a device tested, write a function that says how the device is opened:
//!
//! ```no_run
//! use doorbell_core::nic::Numbering;
//! use doorbell_kit::conformance::Subject;
//! use doorbell_transports::packet::Packet;
//!
//! fn packet() -> Subject<Packet> {
//!     Subject::new(|place| Packet::open(&place.interface, Numbering::default()).unwrap())
//!         .over_a_cable(9000)
//! }
//!
//! doorbell_kit::conformance!(processes: packet);
//! # fn main() {}
//! ```
//!
//! Devices whose two ends are made at once, and so in one process, are [`joined`](Subject::joined),
//! and are tested by `conformance!(threads: …)`.

mod bench;
mod packets;
mod processes;
mod sleep;
mod traffic;

pub use bench::{Bench, Place, Side, Subject, check};
pub use processes::*;
pub use sleep::*;
pub use traffic::*;

/// Declares a module of tests with the name of the function that returns the [`Subject`].
#[macro_export]
macro_rules! conformance {
    (processes: $subject:ident) => {
        $crate::conformance!(@module $subject:
            packets_cross_between_two_processes
            a_peer_that_is_killed_is_gone_and_its_place_can_be_taken
            a_device_that_was_opened_leaves_nothing_behind
        );
    };
    (threads: $subject:ident) => {
        $crate::conformance!(@module $subject: ends_that_were_joined_leave_nothing_behind);
    };
    (@module $subject:ident: $($own:ident)*) => {
        mod $subject {
            use super::$subject as subject;
            $crate::conformance!(@tests
                packets_of_every_length_arrive_whole_and_in_order
                bursts_wait_for_room_and_what_is_lost_is_counted
                what_is_counted_is_what_was_sent
                ten_thousand_sleeps_end
                a_device_is_ready_only_while_it_is_armed
                a_sleep_ends_when_it_was_to
                addresses_of_others_and_of_nobody_are_errors
                $($own)*
            );
        }
    };
    (@tests $($test:ident)*) => {$(
        #[test]
        fn $test() {
            $crate::conformance::check(subject(), |bench| $crate::conformance::$test(bench));
        }
    )*};
}
