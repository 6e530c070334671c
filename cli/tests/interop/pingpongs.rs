//! `doorbell pingpong` with the pingpongs of rdma-core.

use doorbell_interop::Faults;

use crate::ours::Ours;
use crate::session::{Asks, Device, Family, Outcome, PATIENCE, Session, ended, found};
use crate::table::Table;

/// A game of ping-pong, with its options.
#[derive(Clone, Copy, Debug)]
struct Play {
    transport: &'static str,
    mtu: usize,
    size: usize,
    iters: usize,
}

/// How many messages go each way, where they are not very long.
const MANY: usize = 1000;

/// Of each transport a thousand; and lengths, by packets of each size.
pub fn play(session: &Session, table: &mut Table) {
    for transport in ["rc", "uc", "ud"] {
        let size = 1000;
        let play = Play { transport, mtu: 1024, size, iters: MANY };
        table.row(format!("`ibv_{transport}_pingpong`, {MANY} messages of {size} bytes"), |at| {
            rally(session, play, at).map(drop)
        });
    }
    for transport in ["rc", "uc"] {
        for mtu in [256, 512, 1024, 2048, 4096] {
            let what =
                format!("the same, {transport}, packets of {mtu}: 1 MiB, and what is shorter");
            table.row(what, |at| lengths(session, transport, mtu, at));
        }
    }
    let what = "the same, ud: 1 to 4096 bytes".to_owned();
    table.row(what, |at| {
        for size in [1, 2047, 4096] {
            let play = Play { transport: "ud", mtu: 4096, size, iters: 100 };
            rally(session, play, at)?;
        }
        Ok(())
    });
    for (what, faults) in FAULTS {
        table.row(format!("the same, rc, 300 messages of 5000 bytes, with {what}"), |at| {
            under_faults(session, faults, at)
        });
    }
}

/// A mebibyte, and a size about that of a packet or beyond: another one each way.
fn lengths(session: &Session, transport: &'static str, mtu: usize, at: At) -> Outcome {
    let (size, iters) = match at {
        (_, Family::V4, Asks::We) => (1, 100),
        (_, Family::V4, Asks::They) => (mtu, 100),
        (_, Family::V6, Asks::We) => (mtu + 1, 100),
        (_, Family::V6, Asks::They) => (70_000, 10),
    };
    let of_size = |why| format!("{size} bytes: {why}");
    let play = Play { transport, mtu, size, iters };
    rally(session, play, at).map_err(of_size)?;
    // One: the judges look at every packet.
    let long = Play { transport, mtu, size: 1 << 20, iters: 1 };
    rally(session, long, at).map_err(|why| format!("1 MiB: {why}"))
}

/// Of every kind one in a hundred, each way.
const FAULTS: [(&str, Faults); 5] = {
    const NONE: Faults = Faults::NONE;
    [
        ("1 % lost", Faults { loss: 0.01, ..NONE }),
        ("1 % repeated", Faults { repetition: 0.01, ..NONE }),
        ("1 % delayed", Faults { delay: 0.01, ..NONE }),
        ("1 % damaged", Faults { corruption: 0.01, ..NONE }),
        ("1 % of each", WORST),
    ]
};

pub const WORST: Faults =
    Faults { loss: 0.01, repetition: 0.01, delay: 0.01, corruption: 0.01, ..Faults::NONE };

fn under_faults(session: &Session, faults: Faults, at: At) -> Outcome {
    let play = Play { transport: "rc", mtu: 1024, size: 5000, iters: 300 };
    session.under(faults, 7, || rally(session, play, at))
}

/// Where a case takes place.
pub type At = (Device, Family, Asks);

/// Plays, and plays again where the guest's kernel has stopped in the middle of a message.
fn rally(session: &Session, play: Play, at: At) -> Outcome {
    session.despite_stalls(|| attempt(session, play, at))
}

/// Plays, and sees to it that every byte is right, and that no packet was refused but where harm
/// was done.
fn attempt(session: &Session, play: Play, (device, family, asks): At) -> Outcome {
    let Play { transport, mtu, size, iters } = play;
    let gid = session.gid(family);
    let packets = if transport == "ud" { String::new() } else { format!("-m {mtu}") };
    let theirs =
        format!("ibv_{transport}_pingpong -d rxe0 -g {gid} -s {size} -n {iters} {packets}");
    let spec = session.spec(device, family);
    // Some messages ahead are enough, and a thousand long ones would be much memory.
    let ours = format!(
        "pingpong -d {spec} -t {transport} -s {size} -m {mtu} -n {iters} -r 8 --check --json \
         --patience 30"
    );
    let of_guest = |why: doorbell_interop::Error| why.to_string();
    let told = match asks {
        Asks::We => {
            let port = session.port();
            let server = session.guest.start(&format!("{theirs} -p {port}")).map_err(of_guest)?;
            server.listens(port, PATIENCE).map_err(of_guest)?;
            // By TCP they wait at an IPv4 address, whatever the messages go by.
            let host = session.theirs(Family::V4);
            let ours = found(Ours::start(&format!("{ours} -p {port} {host}")));
            both(ended(server), ours)?
        }
        Asks::They => {
            let mut server = Ours::start(&format!("{ours} -p 0"));
            let (port, host) = (server.port()?, session.kernels(Family::V4));
            let client = format!("{theirs} -p {port} {host}");
            let client = session.guest.start(&client).map_err(of_guest)?;
            both(ended(client), found(server))?
        }
    };
    // Where there are faults, the acknowledgement may be lost of a message after which they have
    // gone: that they had all of them, their end has told.
    let harmed = session.harms();
    match (told["refused"].as_u64(), told["confirmed"].as_bool()) {
        (Some(0), Some(true)) => Ok(()),
        (Some(_), Some(_)) if harmed => Ok(()),
        _ => Err(format!("packets were refused, or the last one not confirmed: {told}")),
    }
}

/// Combines the outcomes of both sides, with the output of both if either has failed.
fn both<T, R>(theirs: Outcome<T>, ours: Outcome<R>) -> Outcome<R> {
    match (theirs, ours) {
        (Ok(_), ours) => ours,
        (Err(theirs), Ok(_)) => Err(theirs),
        (Err(theirs), Err(ours)) => Err(format!("{ours}\n{theirs}")),
    }
}
