//! Running a test: where its two ends are, and how they meet.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use anyhow::{Context, anyhow};
use nix::poll::{PollFd, PollFlags, PollTimeout};

use super::plan::Plan;
use super::play::play;
use super::{costs, floors, pair, report};
use crate::perf::ends::peer::{PATIENCE, Peer};
use crate::perf::layers::groups::TCP;
use crate::perf::plan::args::Args;
use crate::perf::plan::list;
use crate::perf::plan::place::Place;
use crate::perf::plan::test::Test;
use crate::{out, usage};

/// Runs a test, or one end of a test, and prints the figures.
///
/// # Errors
/// [`Usage`](usage::Usage) for arguments that make no sense, and another error if something was
/// lost or wrong, or could not be measured.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.list {
        return out::print(&list::text());
    }
    let plan = Plan::of(args).map_err(usage::wrong)?;
    if let Test::Costs(layer) = plan.test {
        report::print(&plan, &costs::run(layer, args, &plan)?, args.form())?;
        return Ok(());
    }
    if plan.test == Test::Layers {
        return report::print(&plan, &floors::run(args, &plan)?, args.form());
    }
    if args.end {
        return pair::second(args, &plan);
    }
    if args.pair {
        return pair::first(args, &plan);
    }
    if args.accept {
        return meet(args, &plan, accepted()?, false);
    }
    check_device(args, &plan)?;
    match (&args.listen, &args.connect) {
        (Some(address), _) => {
            let listener = TcpListener::bind(address);
            let listener = listener.with_context(|| format!("listening on {address}"))?;
            let (stream, from) = listener.accept().context("waiting for the other end")?;
            out::note(format_args!("doorbell: {from} is the other end"));
            meet(args, &plan, stream, false)
        }
        (_, Some(address)) => {
            let stream = TcpStream::connect(address).with_context(|| {
                format!("connecting to {address}: start the other end with --listen first")
            })?;
            meet(args, &plan, stream, true)
        }
        _ => Err(usage::wrong(anyhow!(
            "{test} is measured between two ends, and nothing says where the other one is: add \
             --pair to run both on this machine, or --listen IP:PORT on one machine and --connect \
             IP:PORT on the other",
            test = plan.test.name()
        ))),
    }
}

/// Checks that the device of an end, whose other end is elsewhere, is named with its place.
fn check_device(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let is_tcp = args.device() == TCP && matches!(plan.test, Test::Groups(_));
    if is_tcp || plan.test.is_of_the_kernel() || args.listen.is_none() && args.connect.is_none() {
        return Ok(());
    }
    let checked = usage::device(args.device()).map(drop);
    checked.context("--device").map_err(usage::wrong)
}

/// The next connection to the socket that standard input is.
fn accepted() -> anyhow::Result<TcpStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned().context("the socket that listens")?;
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(PATIENCE).expect("it is less than a month");
    let ready = nix::poll::poll(&mut fds, patience).context("waiting for the other end")?;
    anyhow::ensure!(ready > 0, "the other end has not connected for {PATIENCE:?}");
    let (stream, _) = TcpListener::from(socket).accept().context("accepting the other end")?;
    Ok(stream)
}

/// Runs one end of a test whose other end is on another machine.
fn meet(args: &Args, plan: &Plan, stream: TcpStream, leads: bool) -> anyhow::Result<()> {
    let here = stream.local_addr().context("the connection to the other end")?.ip();
    play(
        args,
        plan,
        &mut Peer::over(stream, leads)?,
        &Place { device: args.device(), here, spare: None },
    )
}
