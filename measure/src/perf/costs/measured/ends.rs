//! The NICs of the ends, two for each of the two that are measured in turn.

use std::net::{IpAddr, Ipv4Addr};
use std::process;
use std::time::Duration;

use anyhow::{Context, anyhow};
use doorbell_verbs::{Config, Nic};

use crate::perf::ends::cable;
use crate::perf::{Args, Plan};
use crate::runs::DEVICES;
use crate::{processors, usage};

/// The place of the ends: a device, with interfaces of their own where it needs some.
pub struct Ends<'a> {
    device: &'a str,
}

impl<'a> Ends<'a> {
    /// Binds this thread, which must be the only one, to a processor, and lays a cable for each two
    /// ends where they need one.
    pub fn prepare(args: &'a Args) -> anyhow::Result<Self> {
        let device = args.device();
        if !DEVICES.contains(&device) {
            let all = DEVICES.join(", ");
            return Err(usage::wrong(anyhow!(
                "--device `{device}`: {} takes one of {all}, and makes what that is opened on",
                args.test().name()
            )));
        }
        if device.starts_with("packet") {
            cable::leave()?;
            for pair in 0..2 {
                let interfaces = [0, 1].map(|end| interface(pair, end));
                let [near, far] = interfaces.each_ref().map(String::as_str);
                cable::lay(pair, [near, far], process::id().into(), args.mtu)?;
                for (end, interface) in interfaces.iter().enumerate() {
                    cable::take_up(interface, address(pair, end), args.mtu)?;
                }
                for interface in &interfaces {
                    cable::await_carrier(interface)?;
                }
            }
        }
        processors::bind(processors::allowed(0)?)?;
        Ok(Self { device })
    }

    /// Opens the two NICs of a pair.
    pub fn open(&self, pair: usize, plan: &Plan) -> anyhow::Result<[Nic; 2]> {
        let open = |end| {
            let name = match self.device {
                "shm" => format!("shm:costs-{}/{}", process::id(), 2 * pair + end),
                "udp" => "udp:127.0.0.1:0".to_owned(),
                device => format!("{device}:{}", interface(pair, end)),
            };
            let config = Config { spin: Duration::MAX, offload: plan.offload, ..Config::default() };
            Nic::builder()
                .config(config)
                .open_blocking(&name)
                .with_context(|| format!("opening {name}"))
        };
        Ok([open(0)?, open(1)?])
    }
}

fn interface(pair: usize, end: usize) -> String {
    format!("bell{}", 2 * pair + end)
}

/// The address of an interface: each cable is a network of its own.
fn address(pair: usize, end: usize) -> IpAddr {
    Ipv4Addr::new(10, 79, pair as u8, 1 + end as u8).into()
}
