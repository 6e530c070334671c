//! Callers: who is at the other end of the connection by which a request has come.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use doorbell_am::Peer;

/// Who has sent a request: what the server's device and kernel tell of the client's process.
///
/// A request has a caller where a server has received it: [`Request::caller`](crate::Request::caller).
/// What a caller is good for depends on the device:
///
/// | device | what is known | who vouches for it |
/// |---|---|---|
/// | `shm` | the [user](Self::user) and the [process](Self::process) | the kernel of this machine |
/// | `udp` and raw Ethernet, on a network whose hosts can be trusted | the [address](Self::address) | the network |
/// | the same, on any other network | the address, which whoever can send with it may have | nobody |
#[derive(Clone, PartialEq, Eq)]
pub struct Caller(Arc<Known>);

#[derive(PartialEq, Eq)]
struct Known {
    address: Option<SocketAddr>,
    process: Option<u32>,
    user: Option<u32>,
}

impl Caller {
    /// Asks the device and the kernel who is at the other end of a connection. This looks at the
    /// NIC, so it must not be called in a handler of Active Messages, which holds the NIC.
    pub(crate) fn of(peer: &Peer) -> Self {
        let process = peer.process();
        Self(Arc::new(Known {
            address: peer.peer_address(),
            user: process.as_ref().and_then(|process| process.user()),
            process: process.map(|process| process.number()),
        }))
    }

    /// The address and port from which the client's NIC sends. `None` on `shm`, whose clients have
    /// no addresses.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// The number of the user whose process has opened the client's device, as the kernel tells.
    /// `None` unless the device is `shm`, where the user has no number in this process's user
    /// namespace, and before Linux 6.5.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.0.user
    }

    /// The number of the process that has opened the client's device, as the kernel tells. `None`
    /// unless the device is `shm`, where the process is of another PID namespace, and before Linux
    /// 6.5. When the process has ended, another may have its number.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.0.process
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Known { address, process, user } = &*self.0;
        let mut shown = f.debug_struct("Caller");
        shown.field("address", address).field("process", process).field("user", user);
        shown.finish()
    }
}
