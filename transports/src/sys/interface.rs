//! What an interface is asked directly.

use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use doorbell_core::wire::Mac;

use super::check;

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
    /// Looks an interface up by its name.
    pub fn named(name: &str) -> io::Result<Self> {
        let socket = asking()?;
        let index = Query::new(name)?.ask(&socket, libc::SIOCGIFINDEX, "SIOCGIFINDEX")?;
        let mac = Query::new(name)?.ask(&socket, libc::SIOCGIFHWADDR, "SIOCGIFHWADDR")?;
        let mtu = Query::new(name)?.ask(&socket, libc::SIOCGIFMTU, "SIOCGIFMTU")?;
        let flags = Query::new(name)?.ask(&socket, libc::SIOCGIFFLAGS, "SIOCGIFFLAGS")?;
        // SAFETY: each request has filled in the field that is read here; all are plain bytes.
        unsafe {
            let kind = mac.ifr_ifru.ifru_hwaddr.sa_family;
            let [a, b, c, d, e, f, ..] = mac.ifr_ifru.ifru_hwaddr.sa_data.map(|byte| byte as u8);
            Ok(Self {
                index: index.ifr_ifru.ifru_ifindex as u32,
                mac: Mac([a, b, c, d, e, f]),
                mtu: mtu.ifr_ifru.ifru_mtu as u32,
                up: i32::from(flags.ifr_ifru.ifru_flags) & libc::IFF_UP != 0,
                ethernet: matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
            })
        }
    }
}

/// A socket by which interfaces can be asked.
pub(super) fn asking() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new and nobody else's.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        Ok(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0), "socket")?))
    }
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
        mut self,
        socket: &OwnedFd,
        request: libc::Ioctl,
        what: &str,
    ) -> io::Result<libc::ifreq> {
        // SAFETY: the kernel reads the name in, and writes one field of, a live ifreq.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut self.0) };
        check(result, what).map(|_| self.0)
    }
}

/// The name of the interface that has an address, if one has.
pub(crate) fn holder(ip: IpAddr) -> io::Result<Option<Box<str>>> {
    struct List(*mut libc::ifaddrs);
    impl Drop for List {
        fn drop(&mut self) {
            // SAFETY: the list is the one that getifaddrs made, and nothing of it is used any more.
            unsafe { libc::freeifaddrs(self.0) };
        }
    }
    let mut list = List(std::ptr::null_mut());
    // SAFETY: the library writes a pointer, to a list or to nothing.
    check(unsafe { libc::getifaddrs(&mut list.0) }, "getifaddrs")?;
    let mut at = list.0;
    // SAFETY: each entry is followed by another until there is none; its name is a string, and its
    // address and mask, where there are any, have the form of their family.
    unsafe {
        while let Some(entry) = at.as_ref() {
            if holds(entry.ifa_addr, entry.ifa_netmask, ip) {
                let name = CStr::from_ptr(entry.ifa_name);
                return Ok(Some(name.to_string_lossy().into()));
            }
            at = entry.ifa_next;
        }
    }
    Ok(None)
}

/// Whether an interface with this address has `ip`: of loopback's, it has the whole network.
///
/// # Safety
/// The pointers must be null, or to addresses that have the form of their family.
unsafe fn holds(address: *const libc::sockaddr, mask: *const libc::sockaddr, ip: IpAddr) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        let family = address.as_ref().map(|address| libc::c_int::from(address.sa_family));
        match (family, ip) {
            (Some(libc::AF_INET), IpAddr::V4(ip)) => {
                let of = |address: *const libc::sockaddr| {
                    let v4 = address.cast::<libc::sockaddr_in>().as_ref();
                    v4.map(|v4| u32::from_be(v4.sin_addr.s_addr))
                };
                let mask = of(mask).filter(|_| ip.is_loopback()).unwrap_or(!0);
                of(address).is_some_and(|address| address & mask == u32::from(ip) & mask)
            }
            (Some(libc::AF_INET6), IpAddr::V6(ip)) => {
                let v6 = address.cast::<libc::sockaddr_in6>().as_ref();
                v6.is_some_and(|v6| v6.sin6_addr.s6_addr == ip.octets())
            }
            _ => false,
        }
    }
}
