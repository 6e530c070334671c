//! Peers on this machine whose memory this process may read: long bodies from them are copied once,
//! by the kernel, from their memory to this process's.
//!
//! Which process a peer is, the kernel tells of the socket by which the two have met: what a peer
//! says of its memory is only ever looked for in the memory of that very process. Whether a process
//! may read another's memory is for the kernel to say, too: as a rule, both must be of the same
//! user, and nothing else may forbid it, as the Yama module and containers do. So each endpoint
//! tells where in its memory a secret number is; a peer that can read it there uses this way, and
//! others pull bodies through the device.

use std::io::IoSliceMut;
use std::sync::Arc;

use doorbell_verbs::floor::PeerProcess;
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::tagged::wire::Whereabouts;

/// A secret number in this process's memory, and where it is.
#[derive(Debug)]
pub struct Secret(Box<[u8; 16]>);

/// A process of this machine whose memory this process may read.
#[derive(Clone, Debug)]
pub struct NearProcess(Arc<PeerProcess>);

/// A peer has told of a number in its memory that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "its process, which is number {0} as the kernel says, has not the number in its memory that it \
     tells of: the peer tells of the memory of another process"
)]
pub struct NotItsMemory(u32);

impl Secret {
    /// Makes a secret of random bytes.
    pub fn new() -> Self {
        let mut number = Box::new([0; 16]);
        getrandom::fill(&mut number[..]).expect("Linux has random numbers once it has started");
        Self(number)
    }

    /// Returns what peers are told.
    pub fn whereabouts(&self) -> Whereabouts {
        let address = self.0.as_ptr().addr() as u64;
        Whereabouts { address, secret: *self.0 }
    }
}

impl NearProcess {
    /// Returns the process of a peer, if this process can read the secret number there that the
    /// peer tells of. Returns `None` if the process can't be read, or has ended.
    ///
    /// # Errors
    /// When the process can be read, and has another number there, or no memory.
    pub fn of(
        process: Option<PeerProcess>,
        Whereabouts { address, secret }: &Whereabouts,
    ) -> Result<Option<Self>, NotItsMemory> {
        let Some(process) = process else { return Ok(None) };
        let process = Self(Arc::new(process));
        let mut found = [0; 16];
        let read = process.read(*address, &mut found);
        match read {
            _ if !process.is_there() => Ok(None),
            Ok(()) if found == *secret => Ok(Some(process)),
            Ok(()) | Err(Errno::EFAULT) => Err(NotItsMemory(process.0.number())),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether the process has not ended. Then what was read before was this process's, and
    /// not that of another with the same number.
    pub fn is_there(&self) -> bool {
        self.0.is_there()
    }

    /// Copies bytes from the process's memory at an address.
    ///
    /// # Errors
    /// Returns an error when the process has ended, has no such memory, or may not be read any
    /// more.
    pub fn read(&self, address: u64, mut into: &mut [u8]) -> Result<(), Errno> {
        let number = i32::try_from(self.0.number()).map_err(|_| Errno::ESRCH)?;
        let mut address = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
        while !into.is_empty() {
            let from = RemoteIoVec { base: address, len: into.len() };
            let local = &mut [IoSliceMut::new(into)];
            let read = process_vm_readv(Pid::from_raw(number), local, &[from])?;
            let rest = std::mem::take(&mut into).get_mut(read..).filter(|_| read > 0);
            into = rest.ok_or(Errno::EFAULT)?;
            address = address.checked_add(read).ok_or(Errno::EFAULT)?;
        }
        Ok(())
    }
}
