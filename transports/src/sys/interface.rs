//! What an interface is asked directly.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use doorbell_core::wire::Mac;
use pnet_datalink::NetworkInterface;

use super::{check, owned};

/// A network interface, by its number: a name may pass to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub index: u32,
    pub mac: Mac,
    pub mtu: u32,
    pub up: bool,
    /// Whether its frames have Ethernet's form.
    pub ethernet: bool,
}

impl Interface {
    /// Looks an interface of this thread's namespace up by its name.
    pub fn named(name: &str) -> io::Result<Self> {
        Self::read(asking()?.as_fd(), &Query::new(name)?)
    }

    /// Looks an interface up by its number, in the namespace that a socket is of: it may have been
    /// given another name.
    pub fn numbered(index: u32, socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut query = Query::new("")?;
        query.0.ifr_ifru.ifru_ifindex = index as libc::c_int;
        Self::read(socket, &Query(query.ask(socket, libc::SIOCGIFNAME, "SIOCGIFNAME")?))
    }

    fn read(socket: BorrowedFd<'_>, query: &Query) -> io::Result<Self> {
        let index = query.ask(socket, libc::SIOCGIFINDEX, "SIOCGIFINDEX")?;
        let mac = query.ask(socket, libc::SIOCGIFHWADDR, "SIOCGIFHWADDR")?;
        let mtu = query.ask(socket, libc::SIOCGIFMTU, "SIOCGIFMTU")?;
        let flags = query.ask(socket, libc::SIOCGIFFLAGS, "SIOCGIFFLAGS")?;
        // SAFETY: the request has filled in this field, of plain bytes.
        let hardware = unsafe { mac.ifr_ifru.ifru_hwaddr };
        // SAFETY: as above.
        let index = unsafe { index.ifr_ifru.ifru_ifindex };
        // SAFETY: as above.
        let mtu = unsafe { mtu.ifr_ifru.ifru_mtu };
        // SAFETY: as above.
        let flags = unsafe { flags.ifr_ifru.ifru_flags };
        let [a, b, c, d, e, f, ..] = hardware.sa_data.map(|byte| byte as u8);
        let kind = hardware.sa_family;
        Ok(Self {
            index: index as u32,
            mac: Mac([a, b, c, d, e, f]),
            mtu: mtu as u32,
            up: i32::from(flags) & libc::IFF_UP != 0,
            ethernet: matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
        })
    }
}

/// A socket by which interfaces can be asked.
pub(super) fn asking() -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory.
    let result = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the descriptor is new and nobody else's.
    unsafe { owned(result, "socket") }
}

pub(super) struct Query(pub libc::ifreq);

impl Query {
    pub fn new(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: ifreq is plain and zero is a value for it.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let bytes = name.as_bytes_with_nul();
        let Some(place) = request.ifr_name.get_mut(..bytes.len()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
        };
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from as libc::c_char;
        }
        Ok(Self(request))
    }

    fn ask(
        &self,
        socket: BorrowedFd<'_>,
        request: libc::Ioctl,
        what: &str,
    ) -> io::Result<libc::ifreq> {
        let mut asked = self.0;
        // SAFETY: the kernel reads and writes a live ifreq, and nothing else for these requests.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut asked) };
        check(result, what).map(|_| asked)
    }
}

/// The interfaces of this thread's namespace.
///
/// # Errors
/// When the system does not tell: for want of a descriptor, say.
pub(crate) fn all() -> io::Result<Vec<NetworkInterface>> {
    let found = pnet_datalink::interfaces();
    if found.is_empty() {
        // Every namespace has a loopback interface: the library makes an empty list of an error.
        // What is missing for its question is missing for ours.
        asking()?;
        return Err(io::Error::other("the system does not list its interfaces"));
    }
    Ok(found)
}

/// The names of the interfaces of this thread's namespace, for errors.
pub(crate) fn names() -> Vec<String> {
    all().into_iter().flatten().map(|interface| interface.name).collect()
}

/// All addresses of this thread's namespace, for errors.
pub(crate) fn addresses() -> Vec<IpAddr> {
    let interfaces = all().into_iter().flatten();
    interfaces.flat_map(|interface| interface.ips).map(|network| network.ip()).collect()
}

/// The addresses of the interface of that name, if there is one.
pub(crate) fn addresses_of(name: &str) -> Option<Vec<IpAddr>> {
    let found = all().ok()?.into_iter().find(|interface| interface.name == name)?;
    Some(found.ips.iter().map(|network| network.ip()).collect())
}

/// The name of the interface that has an address, if one has: of loopback's, it has the whole
/// network.
///
/// # Errors
/// When the system does not tell: for want of a descriptor, say.
pub(crate) fn holder(ip: IpAddr) -> io::Result<Option<String>> {
    let holder = all()?.into_iter().find(|interface| {
        let mut addresses = interface.ips.iter();
        addresses.any(|own| own.ip() == ip || ip.is_loopback() && own.contains(ip))
    });
    Ok(holder.map(|interface| interface.name))
}
