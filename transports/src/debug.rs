//! How devices are shown in debug output: their type, and the address at which peers reach them.

use std::fmt;

use crate::any::AnyDevice;
use crate::device::Device;
use crate::raw::{Peers, Raw};
use crate::shm::Shm;
use crate::udp::Udp;

fn show(f: &mut fmt::Formatter<'_>, name: &str, device: &impl Device) -> fmt::Result {
    f.debug_struct(name)
        .field("address", &format_args!("{}", device.address()))
        .finish_non_exhaustive()
}

impl<P: Peers> fmt::Debug for Raw<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "Raw", self)
    }
}

impl fmt::Debug for Shm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "Shm", self)
    }
}

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "Udp", self)
    }
}

impl fmt::Debug for AnyDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(device) => device.fmt(f),
            Self::PacketV2(device) => device.fmt(f),
            Self::Shm(device) => device.fmt(f),
            Self::Udp(device) => device.fmt(f),
        }
    }
}
