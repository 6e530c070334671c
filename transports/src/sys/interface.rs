//! Network interfaces: what the kernel says of one, and which there are.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use doorbell_core::wire::Mac;
use pnet_datalink::NetworkInterface;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::error::Context;

/// A network interface, by its number: a name may pass to another interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub index: u32,
    pub mac: Mac,
    pub mtu: u32,
    pub up: bool,
    /// True if the interface's frames have Ethernet's form.
    pub ethernet: bool,
}

impl Interface {
    /// Looks an interface of this thread's namespace up by its name.
    pub fn named(name: &str) -> io::Result<Self> {
        Self::read(asking_socket()?.as_fd(), name)
    }

    /// Looks an interface up by its number, in the namespace that a socket is of: the interface may
    /// have been given another name.
    pub fn numbered(index: u32, socket: BorrowedFd<'_>) -> io::Result<Self> {
        Self::read(socket, &index_to_name(socket, index).context("SIOCGIFNAME")?)
    }

    fn read(socket: BorrowedFd<'_>, name: &str) -> io::Result<Self> {
        let ask = |request, what| ask(socket, name, request, what);
        // A name that can be no interface's is refused by this question, which is the first.
        let [a, b, c, d, ..] = ask(libc::SIOCGIFMTU, "SIOCGIFMTU")?;
        let mtu = u32::from_ne_bytes([a, b, c, d]);
        let [low, high, ..] = ask(libc::SIOCGIFFLAGS, "SIOCGIFFLAGS")?;
        let flags = u16::from_ne_bytes([low, high]);
        let [low, high, a, b, c, d, e, f, ..] = ask(libc::SIOCGIFHWADDR, "SIOCGIFHWADDR")?;
        let kind = u16::from_ne_bytes([low, high]);
        Ok(Self {
            index: name_to_index(socket, name).context("SIOCGIFINDEX")?,
            mac: Mac([a, b, c, d, e, f]),
            mtu,
            up: i32::from(flags) & libc::IFF_UP != 0,
            ethernet: matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
        })
    }
}

/// Opens a socket by which interfaces can be asked.
pub(super) fn asking_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).context("socket")
}

/// How many bytes follow the name in a request: a union of what the requests may mean.
pub(super) const VALUE: usize = size_of::<libc::ifreq>() - libc::IFNAMSIZ;

/// A request about an interface (`ifreq`): its name, and a value whose type depends on the request.
#[repr(C)]
pub(super) struct Request<T> {
    name: [u8; libc::IFNAMSIZ],
    value: T,
}

impl<T> Request<T> {
    pub fn new(name: &str, value: T) -> io::Result<Self> {
        const { assert!(size_of::<Self>() == size_of::<libc::ifreq>()) };
        let (text, mut name) = (CString::new(name)?, [0; libc::IFNAMSIZ]);
        let bytes = text.as_bytes_with_nul();
        let Some(place) = name.get_mut(..bytes.len()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
        };
        place.copy_from_slice(bytes);
        Ok(Self { name, value })
    }

    /// Sends the request to the kernel, and returns the value that the kernel has written over the
    /// request's own.
    ///
    /// # Safety
    /// The value must be of the type that the kernel reads and writes for `request`. Where the
    /// value is a pointer, the kernel must be free to read and write what it points to.
    pub unsafe fn send(
        mut self,
        socket: impl AsFd,
        request: libc::Ioctl,
        what: &str,
    ) -> io::Result<T> {
        let fd = socket.as_fd().as_raw_fd();
        // `libc`: no crate wraps these requests.
        // SAFETY: the kernel reads and writes a live `ifreq`; the caller answers for the rest.
        let result = unsafe { libc::ioctl(fd, request, &raw mut self) };
        let done = if result < 0 { Err(io::Error::last_os_error()) } else { Ok(self.value) };
        done.context(what)
    }
}

/// Asks for a value of an interface, which the kernel writes as bytes.
fn ask(
    socket: BorrowedFd<'_>,
    name: &str,
    request: libc::Ioctl,
    what: &str,
) -> io::Result<[u8; VALUE]> {
    let asked = Request::new(name, [0; VALUE])?;
    // SAFETY: any bytes are a value of the array, and those that were sent hold no pointer.
    unsafe { asked.send(socket, request, what) }
}

/// Lists the interfaces of this thread's namespace.
///
/// # Errors
/// When the system does not list them: for want of a descriptor, say.
pub(crate) fn all() -> io::Result<Vec<NetworkInterface>> {
    let found = pnet_datalink::interfaces();
    if found.is_empty() {
        // Every namespace has a loopback interface, so an empty list is how the library tells an
        // error. What the library lacked for its question, this one most likely lacks, too.
        asking_socket()?;
        return Err(io::Error::other("the system does not list its interfaces"));
    }
    Ok(found)
}

/// Lists the names of the interfaces of this thread's namespace, for errors.
pub(crate) fn names() -> Vec<String> {
    all().into_iter().flatten().map(|interface| interface.name).collect()
}

/// Lists all addresses of this thread's namespace, for errors.
pub(crate) fn addresses() -> Vec<IpAddr> {
    let interfaces = all().into_iter().flatten();
    interfaces.flat_map(|interface| interface.ips).map(|network| network.ip()).collect()
}

/// Lists the addresses of the interface of that name, if there is such an interface.
pub(crate) fn addresses_of(name: &str) -> Option<Vec<IpAddr>> {
    let found = all().ok()?.into_iter().find(|interface| interface.name == name)?;
    Some(found.ips.iter().map(|network| network.ip()).collect())
}

/// Returns the name of the interface that has an address, if any has. The loopback interface has
/// all addresses of its network.
///
/// # Errors
/// When the system does not list them: for want of a descriptor, say.
pub(crate) fn holder(ip: IpAddr) -> io::Result<Option<String>> {
    let holder = all()?.into_iter().find(|interface| {
        let mut addresses = interface.ips.iter();
        addresses.any(|own| own.ip() == ip || ip.is_loopback() && own.contains(ip))
    });
    Ok(holder.map(|interface| interface.name))
}
