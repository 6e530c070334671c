//! The subject of a test, and the places at which its devices are opened.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_transports::{Address, Device};

use crate::child::{self, Child, test_of};
use crate::lab::{self, Lab};

/// An end of a pair of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end in the near namespace, and in the test's own process.
    Near,
    /// The end in the far namespace, in the test's process or in another.
    Far,
}

/// The place at which a device is to be opened. The thread is in the right namespace already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The end of the pair.
    pub side: Side,
    /// The name of the interface, for subjects over a cable.
    pub interface: &'static str,
    /// The IPv4 address of the interface.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address of the interface.
    pub ipv6: Ipv6Addr,
    run: String,
}

impl Place {
    /// A name that no other place on this machine has. The place has the same name whenever the
    /// device is opened again in the same test.
    pub fn name(&self) -> String {
        format!("{}/{:?}", self.run, self.side)
    }
}

/// A kind of device, with the way to open it.
pub struct Subject<D> {
    open: Opening<D>,
    mtu: Option<u32>,
    segmentation: bool,
    nobody: Option<Address>,
}

enum Opening<D> {
    Each(fn(&Place) -> D),
    Both(fn() -> (D, D)),
}

impl<D: Device> Subject<D> {
    /// A subject whose devices are opened at two places, perhaps in two processes.
    pub fn new(open: fn(&Place) -> D) -> Self {
        Self { open: Opening::Each(open), mtu: None, segmentation: true, nobody: None }
    }

    /// A subject whose two devices are made at once.
    pub fn joined(both: fn() -> (D, D)) -> Self {
        Self { open: Opening::Both(both), mtu: None, segmentation: true, nobody: None }
    }

    /// Opens the devices on the interfaces of a cable with this MTU, between two namespaces.
    #[must_use]
    pub fn over_a_cable(self, mtu: u32) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// Uses a cable whose ends don't segment frames: `tx-udp-segmentation` is off.
    #[must_use]
    pub fn without_segmentation(self) -> Self {
        Self { segmentation: false, ..self }
    }

    /// Adds an address of this kind of device at which there is no device.
    #[must_use]
    pub fn with_nobody_at(self, address: Address) -> Self {
        Self { nobody: Some(address), ..self }
    }
}

/// A subject with the environment of a test. Each test of the suite is given a bench.
pub struct Bench<'a, D> {
    subject: &'a Subject<D>,
    lab: Option<&'a Lab>,
    test: &'a str,
    run: String,
    is_child: bool,
}

/// The prefix of the part by which a child is told the name of the run.
const RUN: &str = "run ";

/// Runs one test of the suite. The function that is marked as the test calls this with a closure.
///
/// # Panics
/// When the device fails the test.
pub fn check<D: Device, F: FnOnce(&Bench<'_, D>)>(subject: Subject<D>, body: F) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (test, subject) = (test_of::<F>(), &subject);
    if let Some(part) = child::part() {
        let run = part.strip_prefix(RUN).expect("a part of this suite").to_owned();
        return body(&Bench { subject, lab: None, test, run, is_child: true });
    }
    let run = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let Some(mtu) = subject.mtu else {
        return body(&Bench { subject, lab: None, test, run, is_child: false });
    };
    lab::test_named(test, |lab| {
        lab.cable("a0", "b0", mtu).expect("a cable");
        for (namespace, interface) in [(&lab.near, "a0"), (&lab.far, "b0")] {
            let switched =
                namespace.offload(interface, "tx-udp-segmentation", subject.segmentation);
            switched.expect("veth cuts frames or leaves them");
        }
        body(&Bench { subject, lab: Some(lab), test, run: run.clone(), is_child: false });
    });
}

impl<D: Device> Bench<'_, D> {
    fn place(&self, side: Side) -> Place {
        let (interface, host) = match side {
            Side::Near => ("a0", 1),
            Side::Far => ("b0", 2),
        };
        let ipv4 = Ipv4Addr::new(10, 219, 0, host);
        let ipv6 = Ipv6Addr::new(0xfd00, 0xdb, 0, 0, 0, 0, 0, host.into());
        Place { side, interface, ipv4, ipv6, run: self.run.clone() }
    }

    /// Opens the device at one end of the pair.
    pub(super) fn open(&self, side: Side) -> D {
        let Opening::Each(open) = self.subject.open else { panic!("its ends are made at once") };
        let open = || open(&self.place(side));
        match (self.lab, side) {
            (Some(lab), Side::Near) => lab.near.within(open),
            (Some(lab), Side::Far) => lab.far.within(open),
            (None, _) => open(),
        }
    }

    /// Opens both ends of the pair.
    pub(super) fn pair(&self) -> (D, D) {
        match self.subject.open {
            Opening::Each(_) => (self.open(Side::Near), self.open(Side::Far)),
            Opening::Both(both) => both(),
        }
    }

    /// Returns whether this process was started by [`start`](Self::start).
    pub(super) fn is_child(&self) -> bool {
        self.is_child
    }

    /// Starts this test once more, in a process at the far place.
    pub(super) fn start(&self) -> Child {
        let part = format!("{RUN}{}", self.run);
        Child::start(self.test, &part, self.lab.map(|lab| &lab.far))
    }

    pub(super) fn nobody(&self) -> Option<&Address> {
        self.subject.nobody.as_ref()
    }
}
