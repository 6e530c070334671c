//! Both ends of a test on this machine.

use anyhow::{Context, anyhow};

use super::ends::{self, ADDRESSES};
use super::play::play;
use super::{Args, Place, Plan};
use crate::perf::layers::groups::TCP;
use crate::perf::plan::test::Test;
use crate::runs::DEVICES;
use crate::{out, processors, usage};

/// Runs the first end, which leads.
pub fn first(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let is_tcp = args.device() == TCP && matches!(plan.test, Test::Groups(_));
    let device_is_known = DEVICES.contains(&args.device()) || is_tcp;
    if !device_is_known && !plan.test.is_of_the_kernel() {
        let (found, all) = (args.device(), DEVICES.join(", "));
        return Err(usage::wrong(anyhow!(
            "--device `{found}`: --pair takes one of {all}, and makes what that is opened on"
        )));
    }
    processors::allowed(1).context("--pair")?;
    if plan.nic.dedicated && ends::spare(0).is_none() {
        out::note(format_args!(
            "doorbell: four processors would give each NIC one of its own; here its thread shares \
             that of its program, and the two wait for each other"
        ));
    }
    let end = End::new(args, 0);
    ends::first(cable(args, plan), |peer| play(args, plan, peer, &end.place()))
}

/// Runs the second end, in the process that the first end has started.
pub fn second(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let end = End::new(args, 1);
    ends::second(cable(args, plan), |peer| play(args, plan, peer, &end.place()))
}

/// Where an end runs. It is to be found out before the process is bound to a processor.
struct End {
    number: usize,
    device: String,
    spare: Option<usize>,
}

impl End {
    fn new(args: &Args, number: usize) -> Self {
        Self { number, device: ends::device(args.device(), number), spare: ends::spare(number) }
    }

    fn place(&self) -> Place<'_> {
        Place { device: &self.device, here: ADDRESSES[self.number], spare: self.spare }
    }
}

/// Returns the MTU of the network between the ends, or nothing if they need none.
fn cable(args: &Args, plan: &Plan) -> Option<u32> {
    (plan.test.is_of_the_kernel() || args.device() != "shm").then_some(args.mtu)
}
