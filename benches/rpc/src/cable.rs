//! A veth pair between two network namespaces, which are gone when their processes are.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// The interfaces of the client and the server, each in a namespace of its own.
pub const INTERFACES: [&str; 2] = ["bench0", "bench1"];

/// The IPv4 addresses of the interfaces.
pub const ADDRESSES: [&str; 2] = ["10.79.0.1", "10.79.0.2"];

/// The interfaces' numbers, which differ: Linux delays the news that the other end of a veth pair is
/// up, for up to a second, if both ends have the same number.
const NUMBERS: [u32; 2] = [1000, 1001];

/// Moves this process, which must have a single thread, to a network namespace of its own; where that
/// is refused, to a user namespace of its own, too.
pub fn leave() -> anyhow::Result<()> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Err(Errno::EPERM) => leave_as_user(),
        other => other.context("making a network namespace"),
    }
}

fn leave_as_user() -> anyhow::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).context(
        "making a user namespace: run as root, or have the system allow user namespaces (`sysctl \
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

/// Makes the veth pair, from this process's namespace to that of another process.
pub fn lay(process: u32, mtu: u16) -> anyhow::Result<()> {
    let ([near, far], [here, there]) = (INTERFACES, NUMBERS);
    ip(&format!(
        "link add {near} index {here} mtu {mtu} type veth peer name {far} index {there} mtu {mtu} \
         netns {process}"
    ))
}

/// Takes the interface of an end up, with its IPv4 address and no other address: so nothing is sent
/// on the interface by itself.
pub fn take_up(end: usize) -> anyhow::Result<()> {
    let (interface, address) = (INTERFACES[end], ADDRESSES[end]);
    ip(&format!("link set {interface} addrgenmode none"))?;
    ip(&format!("addr add {address}/24 dev {interface}"))?;
    ip(&format!("link set {interface} up"))
}

/// How long an interface may take to notice that the other end is up.
const CARRIER: Duration = Duration::from_secs(5);

/// Waits until the interface of an end has noticed that the other end is up. Before, the interface
/// drops what is sent.
pub fn await_carrier(end: usize) -> anyhow::Result<()> {
    let interface = INTERFACES[end];
    let since = Instant::now();
    while since.elapsed() < CARRIER {
        if ip_says(&format!("-o link show dev {interface}"))?.contains("LOWER_UP") {
            return Ok(());
        }
        sleep(Duration::from_millis(1));
    }
    bail!("interface {interface} was made and has no carrier after {CARRIER:?}")
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    ip_says(arguments).map(drop)
}

fn ip_says(arguments: &str) -> anyhow::Result<String> {
    // The path of ordinary users may lack the directories of `ip`.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new("ip").env("PATH", path).args(arguments.split(' ')).output();
    let output = output.context("running `ip`, which the package iproute2 has")?;
    if !output.status.success() {
        bail!("`ip {arguments}`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
