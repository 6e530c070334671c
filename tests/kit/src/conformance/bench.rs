//! What is tested, and where.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_transports::{Address, Device};

use crate::child::{self, Child, test_of};
use crate::lab::{self, Lab};

/// Which end of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// In the near namespace, and in the test's own process.
    Near,
    /// In the far namespace, in the same process or in another.
    Far,
}

/// Where a device is to be opened. The thread is in the right namespace already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which of the two it is.
    pub side: Side,
    /// The interface, of subjects over a cable.
    pub interface: &'static str,
    /// The interface's address.
    pub ipv4: Ipv4Addr,
    /// The interface's address.
    pub ipv6: Ipv6Addr,
    run: String,
}

impl Place {
    /// A name that no other place has on this machine, and this one has again whenever the device
    /// is opened in the same test.
    pub fn name(&self) -> String {
        format!("{}/{:?}", self.run, self.side)
    }
}

/// A kind of device, and how it is opened.
pub struct Subject<D> {
    open: Open<D>,
    mtu: Option<u32>,
    segmentation: bool,
    nobody: Option<Address>,
}

enum Open<D> {
    Each(fn(&Place) -> D),
    Both(fn() -> (D, D)),
}

impl<D: Device> Subject<D> {
    /// A device that is opened at each of two places, perhaps in two processes.
    pub fn new(open: fn(&Place) -> D) -> Self {
        Self { open: Open::Each(open), mtu: None, segmentation: true, nobody: None }
    }

    /// A device whose two ends are made at once.
    pub fn joined(both: fn() -> (D, D)) -> Self {
        Self { open: Open::Both(both), mtu: None, segmentation: true, nobody: None }
    }

    /// The same on the interfaces of a cable with that MTU, in two namespaces.
    #[must_use]
    pub fn over_a_cable(self, mtu: u32) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// The same on a cable whose ends cut no frames: `tx-udp-segmentation` is off.
    #[must_use]
    pub fn without_segmentation(self) -> Self {
        Self { segmentation: false, ..self }
    }

    /// An address of this kind at which nobody is.
    #[must_use]
    pub fn with_nobody_at(self, address: Address) -> Self {
        Self { nobody: Some(address), ..self }
    }
}

/// A subject where it can be tested: what each test of the suite is given.
pub struct Bench<'a, D> {
    subject: &'a Subject<D>,
    lab: Option<&'a Lab>,
    test: &'a str,
    run: String,
    is_child: bool,
}

/// Says to a child what the run is called.
const RUN: &str = "run ";

/// Runs one test of the suite. To be called by the function that is marked as the test, with a
/// closure.
///
/// # Panics
/// When the device does not do what it must.
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

    /// Opens the device at one of the two places.
    pub(super) fn open(&self, side: Side) -> D {
        let Open::Each(open) = self.subject.open else { panic!("its ends are made at once") };
        let open = || open(&self.place(side));
        match (self.lab, side) {
            (Some(lab), Side::Near) => lab.near.within(open),
            (Some(lab), Side::Far) => lab.far.within(open),
            (None, _) => open(),
        }
    }

    /// Opens both ends.
    pub(super) fn pair(&self) -> (D, D) {
        match self.subject.open {
            Open::Each(_) => (self.open(Side::Near), self.open(Side::Far)),
            Open::Both(both) => both(),
        }
    }

    /// Whether this process is the one that [`start`](Self::start) started.
    pub(super) fn is_child(&self) -> bool {
        self.is_child
    }

    /// Starts this test once more, in a process that is at the far place.
    pub(super) fn start(&self) -> Child {
        let part = format!("{RUN}{}", self.run);
        Child::start(self.test, &part, self.lab.map(|lab| &lab.far))
    }

    pub(super) fn nobody(&self) -> Option<&Address> {
        self.subject.nobody.as_ref()
    }
}
