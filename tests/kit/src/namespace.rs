//! Network namespaces, and commands in them.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use crate::lab_error::LabError;
use crate::sys;

/// A network namespace, with nothing in it at first but the loopback interface, which is up.
#[derive(Debug)]
pub struct Namespace {
    pub(crate) file: File,
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

    /// The namespace that this thread is in.
    ///
    /// # Errors
    /// When the system has no network namespaces.
    pub fn here() -> Result<Self, LabError> {
        let file = File::open("/proc/thread-self/ns/net");
        file.map(|file| Self { file }).map_err(LabError::system("looking for this namespace"))
    }

    fn enter(&self) {
        let entered = sys::enter_network(self.file.as_fd());
        entered.expect("whoever was in a namespace, or made it, may enter it");
    }

    /// Runs a function in the namespace. The sockets that the function opens, and the threads and
    /// processes that it starts, stay in that namespace; the calling thread returns to its own.
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

    /// Makes a command that will run in the namespace.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let file = self.file.try_clone().expect("there is a descriptor left");
        sys::run_in_network(&mut command, file.into());
        command
    }

    /// Runs `ip` in the namespace, with the arguments of a command line.
    ///
    /// # Errors
    /// When `ip` is missing, or fails.
    pub fn ip(&self, arguments: &str) -> Result<String, LabError> {
        self.run("ip", "iproute2", arguments)
    }

    /// Waits until the output of `ip` meets a condition. The system carries out some changes later,
    /// and drops packets until then.
    pub(crate) fn wait_for(
        &self,
        show: &str,
        is_so: impl Fn(&str) -> bool,
    ) -> Result<(), LabError> {
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
    /// When `ethtool` is missing, or the feature can't be switched.
    pub fn offload(&self, interface: &str, feature: &str, on: bool) -> Result<(), LabError> {
        let to = if on { "on" } else { "off" };
        self.run("ethtool", "ethtool", &format!("-K {interface} {feature} {to}"))?;
        let all = self.run("ethtool", "ethtool", &format!("-k {interface}"))?;
        // The value is `on` or `on [fixed]`, but not `off [requested on]`.
        let is = |line: &str| {
            let (name, value) = line.trim().split_once(": ")?;
            (name == feature).then(|| value.split(' ').next() == Some(to))
        };
        if all.lines().find_map(is) == Some(true) {
            return Ok(());
        }
        Err(LabError::Fixed { interface: interface.to_owned(), feature: feature.to_owned() })
    }

    /// Runs a program for administrators in the namespace, and returns its output.
    fn run(
        &self,
        program: &'static str,
        package: &'static str,
        arguments: &str,
    ) -> Result<String, LabError> {
        // The program is started by its whole path, from a thread in the namespace. Commands that
        // enter the namespace by themselves, or are looked up in a `PATH` of their own, are started
        // by a fork, which takes the longer the more memory the devices of other tests have.
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

/// The path of a program for administrators, whose folder may not be in the user's `PATH`.
fn path_of(program: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.find(|path| path.is_file()).unwrap_or_else(|| program.into())
}
