//! The command, and verbs, against the Linux kernel's RoCE, and the programs of rdma-core on it.
//!
//! One guest is booted for all of it. `ROWS=rping` tries those rows alone whose names contain that.
//! What was tried becomes a table, which must be the one in `docs/operating/interoperability.md`. Where there
//! is no QEMU, the suite is passed over, which is said; where the variable `CI` is set, it fails.

mod connections;
#[path = "../../../examples/rping/game.rs"]
mod game;
mod judged;
#[path = "../command/ours.rs"]
mod ours;
mod pingpongs;
mod session;
mod table;

use std::time::Instant;

use doorbell_interop::{Guest, GuestConfig, Image, Link, or_pass_over};
use doorbell_kit::lab;

use session::Session;
use table::Table;

#[test]
fn the_kernels_driver_and_rdma_cores_programs_are_met() {
    let Some(image) = or_pass_over(Image::prepare()) else { return };
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let link = Link::plug(lab, &cable).expect("the far end is free");
        let booted = Guest::boot(&image, &GuestConfig::of(&cable.far), &link);
        let Some(guest) = or_pass_over(booted) else { return };
        let session = Session::new(cable, link, guest);
        let (mut table, start) = (Table::new(), Instant::now());
        pingpongs::play(&session, &mut table);
        connections::make(&session, &mut table);
        let judged = session.judge();
        eprintln!(
            "{table}\n{judged}\ncases repeated because the guest's kernel had stopped in the \
             middle of a message: {}\n{:.0?} in all\n{}",
            session.stalls(),
            start.elapsed(),
            session::versions(&image)
        );
        table.check();
    });
}
