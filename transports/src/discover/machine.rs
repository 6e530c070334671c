//! What the machine has for devices, on any interface.

use std::fs;

use super::remark::Remark;

/// The properties of a machine that devices depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The version of the kernel.
    pub kernel: String,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// True if this process may open raw sockets, by the capability `CAP_NET_RAW`.
    pub raw_sockets: bool,
    /// True if this process may have socket buffers of any size, by the capability `CAP_NET_ADMIN`.
    pub large_buffers: bool,
    /// The most bytes of a socket's receive buffer without that capability (`net.core.rmem_max`).
    pub receive_buffer: Option<u64>,
    /// The most bytes of a socket's send buffer without that capability (`net.core.wmem_max`).
    pub send_buffer: Option<u64>,
    /// True if users may make namespaces of their own, in which they are root.
    pub user_namespaces: bool,
    /// The kernel's RDMA devices: hardware, or its own software RoCE, which takes port 4791.
    pub rdma: Vec<String>,
}

/// The bit of `CAP_NET_ADMIN` in the masks that the kernel prints.
const NET_ADMIN: u32 = 12;
/// The bit of `CAP_NET_RAW` in the masks that the kernel prints.
const NET_RAW: u32 = 13;

/// How many bytes a device's socket buffers should hold. With less, bursts are lost.
const WANTED: u64 = 2 << 20;

impl Machine {
    /// Looks at the machine on which this process runs.
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| text(path).trim().parse().ok();
        let capabilities = effective_capabilities(&text("/proc/self/status"));
        let rdma = fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
        Self {
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            raw_sockets: capabilities >> NET_RAW & 1 != 0,
            large_buffers: capabilities >> NET_ADMIN & 1 != 0,
            receive_buffer: number("/proc/sys/net/core/rmem_max"),
            send_buffer: number("/proc/sys/net/core/wmem_max"),
            user_namespaces: number("/proc/sys/user/max_user_namespaces") > Some(0)
                && number("/proc/sys/kernel/unprivileged_userns_clone") != Some(0)
                && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") != Some(1),
            rdma: rdma.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        }
    }

    /// Lists what of the machine keeps devices from working, or from being as fast as they could
    /// be.
    pub fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let mut remark = |when: bool, found: String, advice: &str| {
            if when {
                remarks.push(Remark::new(found, advice));
            }
        };
        remark(
            !self.raw_sockets,
            "this process may not open raw sockets, which `packet` and `packet-v2` are".to_owned(),
            "run as root, or `setcap cap_net_raw+ep` the program",
        );
        remark(
            self.processors < 2,
            "this process may use a single processor".to_owned(),
            "who polls then keeps its peer from running: give it two, or let it sleep",
        );
        for (name, limit) in
            [("net.core.rmem_max", self.receive_buffer), ("net.core.wmem_max", self.send_buffer)]
        {
            remark(
                !self.large_buffers && limit.is_some_and(|limit| limit < WANTED),
                format!("{name} keeps sockets' buffers to {} bytes", limit.unwrap_or(0)),
                &format!("`sysctl -w {name}={WANTED}`, or run with CAP_NET_ADMIN"),
            );
        }
        let software = self.rdma.iter().find(|name| name.starts_with("rxe"));
        remark(
            software.is_some(),
            format!("the kernel's software RoCE ({}) has port 4791", self.rdma.join(", ")),
            "`rdma link delete` takes it away, or `udp` takes another port",
        );
        remarks
    }
}

/// Reads the capabilities of a process, as a mask, from its `status` file.
fn effective_capabilities(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_what_the_kernel_prints() {
        let status = "Name:\tbell\nCapPrm:\t0000000000000000\nCapEff:\t0000000000003000\n";
        assert_eq!(effective_capabilities(status), 1 << NET_RAW | 1 << NET_ADMIN);
        assert_eq!(effective_capabilities(""), 0);
    }

    #[test]
    fn what_a_machine_lacks_is_said_with_what_to_do() {
        let poor = Machine {
            kernel: String::new(),
            processors: 1,
            raw_sockets: false,
            large_buffers: false,
            receive_buffer: Some(212_992),
            send_buffer: Some(4 << 20),
            user_namespaces: false,
            rdma: vec!["rxe0".to_owned()],
        };
        let remarks = poor.remarks();
        let found: Vec<_> = remarks.iter().map(|remark| &remark.found[..]).collect();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(remarks.iter().any(|it| it.advice.contains("sysctl -w net.core.rmem_max=2097152")));
        let rich = Machine {
            processors: 8,
            raw_sockets: true,
            large_buffers: true,
            rdma: Vec::new(),
            ..poor
        };
        assert_eq!(rich.remarks(), []);
    }
}
