//! A network of one's own: two namespaces and a veth pair between them.
//!
//! The namespaces have no names. They, and the interfaces in them, are gone when the processes are,
//! whatever ended those: there is nothing to be removed, and nothing that could be left behind.

use std::net::IpAddr;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// Moves this process, which must have a single thread, to a network namespace of its own; if it
/// may not, in a user namespace of its own.
pub fn leave() -> anyhow::Result<()> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Err(Errno::EPERM) => leave_as_user(),
        other => other.context("making a network namespace"),
    }
}

fn leave_as_user() -> anyhow::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).context(
        "making a user namespace: run as root, or have the system allow it (`sysctl \
         user.max_user_namespaces`, `kernel.unprivileged_userns_clone`, \
         `kernel.apparmor_restrict_unprivileged_userns`)",
    )?;
    let files = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ];
    for (file, text) in files {
        let path = format!("/proc/self/{file}");
        std::fs::write(&path, text).with_context(|| format!("writing {path}"))?;
    }
    Ok(())
}

/// The number of the first interface; those of a namespace that was just made are lower.
const FIRST_NUMBER: usize = 1000;

/// Lays the cable of a number from an interface here to one in the namespace of another process.
///
/// All interfaces get different numbers: Linux delays the news that the other end of a veth pair is
/// up, for up to a second, if both ends have the same number, as the first ones of two namespaces
/// would have.
pub fn lay(cable: usize, [near, far]: [&str; 2], process: u64, mtu: u32) -> anyhow::Result<()> {
    let [here, there] = [0, 1].map(|end| FIRST_NUMBER + 2 * cable + end);
    ip(&format!(
        "link add {near} index {here} mtu {mtu} type veth peer name {far} index {there} mtu {mtu} \
         netns {process}"
    ))
}

/// The least MTU with which the kernel does IPv6.
const LEAST_IPV6: u32 = 1280;

/// Takes an interface up, with an address and no other: so nothing is sent on it by itself.
pub fn take_up(interface: &str, address: IpAddr, mtu: u32) -> anyhow::Result<()> {
    if mtu >= LEAST_IPV6 {
        ip(&format!("link set {interface} addrgenmode none"))?;
    }
    ip(&format!("addr add {address}/24 dev {interface}"))?;
    ip(&format!("link set {interface} up"))
}

/// How long the kernel may take to notice that both ends of a cable are up, on a machine that is
/// busy.
const CARRIER: Duration = Duration::from_secs(30);

/// Waits until an interface has noticed that the other end is up: before, it drops what it is
/// given.
pub fn await_carrier(interface: &str) -> anyhow::Result<()> {
    let since = Instant::now();
    while since.elapsed() < CARRIER {
        let all = getifaddrs().context("asking for the interfaces")?;
        let mut flags = all.filter(|one| one.interface_name == interface).map(|one| one.flags);
        if flags.any(|flags| flags.contains(InterfaceFlags::IFF_RUNNING)) {
            return Ok(());
        }
        sleep(Duration::from_millis(1));
    }
    bail!("interface {interface}, which was just made, has no carrier")
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    // Not everybody's path leads to programs of administrators.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new("ip").env("PATH", path).args(arguments.split(' ')).output();
    let output = output.context("running `ip`, which the package iproute2 has")?;
    if !output.status.success() {
        bail!("`ip {arguments}`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
