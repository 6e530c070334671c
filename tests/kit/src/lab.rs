//! Real Ethernets to test on: network namespaces, and cables between them.
//!
//! [`test()`] runs the body of a test with a [`Lab`], as root or in a user namespace:
//!
//! ```no_run
//! use std::net::UdpSocket;
//!
//! use doorbell_kit::lab;
//!
//! # fn open(interface: &str) {}
//! // In a function marked as a test:
//! lab::test(|lab| {
//!     let cable = lab.cable("a0", "b0", 9000).unwrap();
//!     // This thread is in the near namespace, where `a0` is.
//!     let near = UdpSocket::bind((cable.near.ipv4, 4791)).unwrap();
//!     // What is to be in the far one is made there,
//!     let far = lab.far.within(|| UdpSocket::bind((cable.far.ipv6, 4791))).unwrap();
//!     // or by a process there.
//!     let mut ping = lab.far.command("ping");
//!     ping.args(["-c", "1"]).arg(cable.near.ipv4.to_string()).status().unwrap();
//! });
//! ```
//!
//! A namespace, with all interfaces in it, is gone when no [`Namespace`], socket, thread or process
//! holds it any more: there is nothing to be removed.

mod names;
mod test;

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::Command;

use thiserror::Error;

use crate::sys;

pub use names::with_names;
pub(crate) use test::test_named;
pub use test::{passed_over, test};

/// Why there is no lab, or why it can't be made what it was to be.
#[derive(Debug, Error)]
pub enum LabError {
    /// A program is not there, or can't be started.
    #[error("`{program}` can't be run ({source}): `apt-get install {package}` installs it")]
    Missing {
        /// The name of the program.
        program: &'static str,
        /// The package that it comes in.
        package: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A program has ended with a failure.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The command line of the program.
        command: String,
        /// What the program said to standard error.
        said: String,
    },
    /// A feature of an interface is not what it was told to be.
    #[error("{feature} of {interface} stays what it is: `ethtool -k {interface}` says more")]
    Fixed {
        /// The name of the interface.
        interface: String,
        /// The name of the feature, as `ethtool -k` gives it.
        feature: String,
    },
    /// The system refuses to make or to enter a network namespace.
    #[error("{what}: {source}; it takes root, or a system that lets users make namespaces")]
    System {
        /// The action that the system refuses.
        what: &'static str,
        /// The error that the system returns.
        source: io::Error,
    },
}

impl LabError {
    fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// A network namespace, with nothing in it at first but the loopback interface, which is up.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Makes a network namespace, whose loopback interface is up.
    ///
    /// # Errors
    /// When this process may not make namespaces, or `ip` (package iproute2) is missing.
    pub fn new() -> Result<Self, LabError> {
        let here = Self::here()?;
        sys::leave_network().map_err(LabError::system("making a network namespace"))?;
        let made = Self::here();
        here.enter();
        let made = made?;
        made.ip("link set lo up")?;
        Ok(made)
    }

    /// The one that this thread is in.
    ///
    /// # Errors
    /// When the system has no such thing.
    pub fn here() -> Result<Self, LabError> {
        let file = File::open("/proc/thread-self/ns/net");
        file.map(|file| Self { file }).map_err(LabError::system("looking for this namespace"))
    }

    fn enter(&self) {
        let entered = sys::enter_network(self.file.as_fd());
        entered.expect("whoever was in a namespace, or made it, may enter it");
    }

    /// Does something there. The sockets that it opens, the threads and processes that it starts
    /// are of that namespace for good; the thread that called this comes back.
    pub fn within<R>(&self, does: impl FnOnce() -> R) -> R {
        struct Back(Namespace);
        impl Drop for Back {
            fn drop(&mut self) {
                self.0.enter();
            }
        }
        let _back = Back(Self::here().expect("every thread is in a namespace"));
        self.enter();
        does()
    }

    /// A command that will run there.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let file = self.file.try_clone().expect("there is a descriptor left");
        sys::run_in_network(&mut command, file.into());
        command
    }

    /// Runs `ip` there, with what follows it on a command line.
    ///
    /// # Errors
    /// When that is missing, or does not succeed.
    pub fn ip(&self, arguments: &str) -> Result<String, LabError> {
        self.run("ip", "iproute2", arguments)
    }

    /// Waits until what `ip` shows is so. Some of what it is told the system does later, and until
    /// then drops what is sent.
    fn wait_for(&self, show: &str, is_so: impl Fn(&str) -> bool) -> Result<(), LabError> {
        const LOOKS: usize = 10_000; // of a millisecond or more
        for _ in 0..LOOKS {
            if is_so(&self.ip(show)?) {
                return Ok(());
            }
        }
        let (command, said) = (format!("ip {show}"), "it does not become so".to_owned());
        Err(LabError::Failed { command, said })
    }

    /// Switches a feature of an interface on or off, by the name that `ethtool -k` gives it, such
    /// as `tx-udp-segmentation`.
    ///
    /// # Errors
    /// When `ethtool` is missing, or the feature can't be switched there.
    pub fn offload(&self, interface: &str, feature: &str, on: bool) -> Result<(), LabError> {
        let to = if on { "on" } else { "off" };
        self.run("ethtool", "ethtool", &format!("-K {interface} {feature} {to}"))?;
        let all = self.run("ethtool", "ethtool", &format!("-k {interface}"))?;
        // `on`, or `on [fixed]`: but not `off [requested on]`.
        let is = |line: &str| {
            let (name, value) = line.trim().split_once(": ")?;
            (name == feature).then(|| value.split(' ').next() == Some(to))
        };
        if all.lines().find_map(is) == Some(true) {
            return Ok(());
        }
        Err(LabError::Fixed { interface: interface.to_owned(), feature: feature.to_owned() })
    }

    /// Runs a program of administrators there, and returns what it prints.
    fn run(
        &self,
        program: &'static str,
        package: &'static str,
        arguments: &str,
    ) -> Result<String, LabError> {
        // From a thread that is there, and by the program's whole path. Commands that enter the
        // namespace by themselves, or are looked for in a path of their own, are started by a fork,
        // which takes the longer the more memory the devices of other tests have.
        let mut command = Command::new(path_of(program));
        let output = self.within(|| command.args(arguments.split(' ')).output());
        let output = output.map_err(|source| LabError::Missing { program, package, source })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LabError::Failed { command: format!("{program} {arguments}"), said })
    }
}

/// Where a program of administrators is, to which not everybody's path leads.
fn path_of(program: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.find(|path| path.is_file()).unwrap_or_else(|| program.into())
}

/// One end of a cable: an interface that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Its name.
    pub interface: String,
    /// Its address, of a network of 24 bits.
    pub ipv4: Ipv4Addr,
    /// Its address, of a network of 64 bits. It may be used at once.
    pub ipv6: Ipv6Addr,
}

/// A veth pair between two network namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cable {
    /// The end of the cable in the near namespace.
    pub near: End,
    /// The end of the cable in the far namespace.
    pub far: End,
}

/// Two network namespaces, and cables between them.
#[derive(Debug)]
pub struct Lab {
    /// The first namespace, in which the body of a [`test()`] is.
    pub near: Namespace,
    /// The second namespace.
    pub far: Namespace,
    cables: Cell<u8>,
}

impl Lab {
    /// Makes two network namespaces without a cable between them.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn new() -> Result<Self, LabError> {
        Ok(Self { near: Namespace::new()?, far: Namespace::new()?, cables: Cell::new(0) })
    }

    /// Plugs in a cable whose first end is an interface of the near namespace, and the second one
    /// of the far. Both are up, and have the addresses that are returned and no others: so nothing
    /// is sent on it by itself. Of the first cable they are `10.219.0.1` and `fd00:db::1`,
    /// `10.219.0.2` and `fd00:db::2`.
    ///
    /// # Errors
    /// When `ip` does not do it: names are at most 15 bytes, and taken only once.
    pub fn cable(&self, near: &str, far: &str, mtu: u32) -> Result<Cable, LabError> {
        self.plug(&self.near, near, &self.far, far, mtu)
    }

    /// Plugs in such a cable with both ends in the near namespace, between which the kernel then
    /// moves no IP packets.
    ///
    /// # Errors
    /// As [`cable`](Self::cable).
    pub fn loopback(&self, one: &str, other: &str, mtu: u32) -> Result<Cable, LabError> {
        self.plug(&self.near, one, &self.near, other, mtu)
    }

    fn plug(
        &self,
        near: &Namespace,
        near_name: &str,
        far: &Namespace,
        far_name: &str,
        mtu: u32,
    ) -> Result<Cable, LabError> {
        let number = self.cables.replace(self.cables.get() + 1);
        let other = format!("/proc/{}/fd/{}", std::process::id(), far.file.as_raw_fd());
        // Linux delays the news that the other end of a veth pair is up, for up to a second, if both
        // ends have the same number, as the first ones of two namespaces would have.
        let [here, there] = [0, 1].map(|end| 1000 + 2 * u32::from(number) + end);
        near.ip(&format!(
            "link add {near_name} index {here} mtu {mtu} type veth peer name {far_name} index \
             {there} mtu {mtu} netns {other}"
        ))?;
        for (namespace, interface) in [(near, near_name), (far, far_name)] {
            // No address of its own making.
            namespace.ip(&format!("link set {interface} addrgenmode none"))?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        let address = |namespace: &Namespace, interface: &str, host: u8| {
            namespace.wait_for(&format!("-o link show dev {interface}"), |shown| {
                shown.contains(" state UP ") && !shown.contains(" qdisc noop ")
            })?;
            let ipv4 = Ipv4Addr::new(10, 219, number, host);
            let ipv6 = Ipv6Addr::new(0xfd00, 0xdb, u16::from(number), 0, 0, 0, 0, u16::from(host));
            namespace.ip(&format!("addr add {ipv4}/24 dev {interface}"))?;
            // Not first asked for whether anybody has it.
            namespace.ip(&format!("addr add {ipv6}/64 dev {interface} nodad"))?;
            // The group by which neighbours ask for it.
            let group = format!("ff02::1:ff00:{host}");
            namespace.wait_for(&format!("-6 maddr show dev {interface}"), |shown| {
                shown.contains(&group)
            })?;
            Ok(End { interface: interface.to_owned(), ipv4, ipv6 })
        };
        Ok(Cable { near: address(near, near_name, 1)?, far: address(far, far_name, 2)? })
    }
}
