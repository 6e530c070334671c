//! Peers on this machine whose memory this process may read: long bodies from them are copied once,
//! by the kernel, from their memory to this process's.
//!
//! Whether a process may read another's memory is for the kernel to say: as a rule, both must be of
//! the same user, and nothing else may forbid it, as the Yama module and containers do. So each
//! endpoint tells where in its memory a secret number is; a peer that can read it there uses this
//! way, and others pull bodies through the device.

use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::wire::Whereabouts;

/// A secret number in this process's memory, and where it is.
#[derive(Debug)]
pub struct Secret(Box<[u8; 16]>);

/// A process of this machine whose memory this process may read, with the secret number by which
/// the process is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NearProcess(Whereabouts);

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
        Whereabouts { process: std::process::id(), address, secret: *self.0 }
    }
}

impl NearProcess {
    /// Finds the process of a peer, if this process can read the peer's secret number there.
    pub fn at(whereabouts: &Whereabouts) -> Option<Self> {
        let process = Self(*whereabouts);
        process.is_there().then_some(process)
    }

    /// Returns whether the process is still there. If not, another may have its number.
    pub fn is_there(self) -> bool {
        let mut found = [0; 16];
        self.read(self.0.address, &mut found).is_ok() && found == self.0.secret
    }

    /// Copies bytes from the process's memory at an address.
    ///
    /// # Errors
    /// Returns an error when the process has ended, has no such memory, or may not be read any
    /// more.
    pub fn read(self, address: u64, mut into: &mut [u8]) -> Result<(), nix::Error> {
        let number = Pid::from_raw(i32::try_from(self.0.process).map_err(|_| nix::Error::ESRCH)?);
        let mut address = address as usize;
        while !into.is_empty() {
            let from = RemoteIoVec { base: address, len: into.len() };
            let read = process_vm_readv(number, &mut [IoSliceMut::new(into)], &[from])?;
            if read == 0 {
                return Err(nix::Error::EFAULT);
            }
            address += read;
            into = &mut into[read..];
        }
        Ok(())
    }
}
