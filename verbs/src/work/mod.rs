//! Kinds of requests. Each kind accepts only the options that are valid for it.
//!
//! ```
//! use doorbell_verbs::work::{Read, Send, Write};
//! use doorbell_verbs::{Buf, Imm, RemoteMemory};
//!
//! let memory: RemoteMemory = "7f0012345000+4096@8c0ffee1".parse()?;
//! let _ = Send::new(b"hello").imm(Imm(7)).solicited();
//! let _ = Write::new(b"hello", memory)?.unsignalled();
//! let _ = Read::new(Buf::with_capacity(4096), memory)?.fenced();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A write may carry an immediate, and a read may not:
//!
//! ```
//! # use doorbell_verbs::work::{Read, Write};
//! # use doorbell_verbs::{Buf, Imm, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Write::new(Buf::with_capacity(4096), memory).unwrap().imm(Imm(7));
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use doorbell_verbs::work::{Read, Write};
//! # use doorbell_verbs::{Buf, Imm, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Read::new(Buf::with_capacity(4096), memory).unwrap().imm(Imm(7));
//! }
//! ```
//!
//! An atomic operation takes a number, and no data:
//!
//! ```
//! # use doorbell_verbs::work::FetchAdd;
//! # use doorbell_verbs::{Buf, RemoteMemory};
//! fn add(memory: RemoteMemory) {
//!     let _ = FetchAdd::new(memory, 8);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use doorbell_verbs::work::FetchAdd;
//! # use doorbell_verbs::{Buf, RemoteMemory};
//! fn add(memory: RemoteMemory) {
//!     let _ = FetchAdd::new(memory, Buf::with_capacity(8));
//! }
//! ```
//!
//! Only a send can invalidate a key of the receiver's:
//!
//! ```
//! # use doorbell_verbs::work::{Send, Write};
//! # use doorbell_verbs::{Buf, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Send::new(Buf::with_capacity(4096)).invalidate(memory);
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use doorbell_verbs::work::{Send, Write};
//! # use doorbell_verbs::{Buf, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Write::new(Buf::with_capacity(4096), memory).unwrap().invalidate(memory);
//! }
//! ```
//!
//! A buffer belongs to the program until it is posted, and then to the NIC until its request
//! completes:
//!
//! ```
//! # use doorbell_verbs::work::Send;
//! # use doorbell_verbs::{Buf, Refused, SendQueue, WorkRequest};
//! fn post(queue: &mut SendQueue, mut buf: Buf) -> Result<(), Refused<WorkRequest>> {
//!     buf[0] = 1;
//!     queue.post(Send::new(buf))
//! }
//! ```
//!
//! ```compile_fail,E0382
//! # use doorbell_verbs::work::Send;
//! # use doorbell_verbs::{Buf, Refused, SendQueue, WorkRequest};
//! fn post(queue: &mut SendQueue, mut buf: Buf) -> Result<(), Refused<WorkRequest>> {
//!     let posted = queue.post(Send::new(buf));
//!     buf[0] = 1;
//!     posted
//! }
//! ```

mod remote;

use doorbell_core::nic::{AddressId, Data, Inline, Memory, WorkRequest};
use doorbell_core::wire::{Imm, Metadata, Qkey, Qpn};

pub use remote::{RemoteMemory, RemoteMemoryError};

use crate::error::Failed;

/// Declares kinds of requests, with the options that all kinds have.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "a request does nothing unless it is posted"]
        pub struct $name(WorkRequest);

        impl $name {
            /// Sets the number by which the completion names this request.
            #[inline]
            pub fn id(self, id: u64) -> Self {
                Self(WorkRequest { id, ..self.0 })
            }

            /// Makes the request unsignalled: if it succeeds, it has no completion.
            #[inline]
            pub fn unsignalled(self) -> Self {
                Self(self.0.unsignalled())
            }

            /// Asks the peer to acknowledge the request at once, for a program that waits for it.
            #[inline]
            pub fn awaited(self) -> Self {
                Self(self.0.awaited())
            }

            /// Starts the request only after all earlier reads and atomic operations of the queue
            /// pair. Without a fence, a read may return what a later write has put there.
            #[inline]
            pub fn fenced(self) -> Self {
                Self(self.0.fenced())
            }
        }

        impl From<$name> for WorkRequest {
            #[inline]
            fn from(request: $name) -> Self {
                request.0
            }
        }
    )+};
}

/// Adds the options of the kinds that can complete a receive of the peer's.
macro_rules! told_of {
    ($($name:ident)+) => {$(
        impl $name {
            /// Adds an immediate, which completes a receive of the peer's.
            #[inline]
            pub fn imm(self, imm: Imm) -> Self {
                Self(self.0.with_imm(imm))
            }

            /// Marks the message as solicited, which wakes a peer that sleeps until a solicited
            /// message comes.
            #[inline]
            pub fn solicited(self) -> Self {
                Self(self.0.solicited())
            }
        }
    )+};
}

told_of! { Send Write Datagram }

requests! {
    /// A message into the peer's next receive.
    Send
    /// A write to the peer's memory.
    Write
    /// A read of the peer's memory.
    Read
    /// An atomic compare-and-swap of a word of the peer's memory.
    CompareSwap
    /// An atomic addition to a word of the peer's memory.
    FetchAdd
    /// A datagram to a queue pair without a connection.
    Datagram
}

impl Datagram {
    /// Makes a request to send `data` to the queue pair `to`: the NIC's number for the address of
    /// its host, its number there, and its key.
    #[inline]
    pub(crate) fn to(to: (AddressId, Qpn, Qkey), data: Data) -> Self {
        Self(WorkRequest::datagram(0, to, data))
    }
}

impl Send {
    /// Makes a request to send `data` as one message.
    #[inline]
    pub fn new(data: impl Into<Data>) -> Self {
        Self(WorkRequest::send(0, data))
    }

    /// Makes a request to send a few bytes, which are copied into the request.
    ///
    /// # Errors
    /// Returns an error when there are more than 64 bytes.
    #[inline]
    pub fn inline(bytes: &[u8]) -> Result<Self, Failed> {
        Inline::new(bytes).map(Self::new).ok_or_else(|| Failed::too_long(bytes.len()))
    }

    /// Invalidates a key of the receiver's memory, if the receiver has registered that memory with
    /// the right to do so.
    #[inline]
    pub fn invalidate(self, memory: RemoteMemory) -> Self {
        Self(self.0.with_invalidate(memory.rkey()))
    }
}

impl Write {
    /// Makes a request to write `data` to the beginning of the remote memory `to`.
    ///
    /// # Errors
    /// Returns an error when the data is longer than the memory.
    #[inline]
    pub fn new(data: impl Into<Data>, to: RemoteMemory) -> Result<Self, Failed> {
        Ok(Self(WorkRequest::write(0, to.address(), to.rkey(), to.check(data.into())?)))
    }

    /// Makes a request to write a few bytes, which are copied into the request.
    ///
    /// # Errors
    /// Returns an error when there are more than 64 bytes, or more than the memory has room for.
    #[inline]
    pub fn inline(bytes: &[u8], to: RemoteMemory) -> Result<Self, Failed> {
        let data = Inline::new(bytes).ok_or_else(|| Failed::too_long(bytes.len()))?;
        Self::new(data, to)
    }

    /// Adds up to sixteen bytes to the completion of the peer's receive.
    #[inline]
    pub fn metadata(self, metadata: Metadata) -> Self {
        Self(self.0.with_metadata(metadata))
    }
}

impl Read {
    /// Makes a request to read from the beginning of the remote memory `from`, as much as `into`
    /// has room for.
    ///
    /// # Errors
    /// Returns an error when `into` has room for more than the memory holds.
    #[inline]
    pub fn new(into: impl Into<Memory>, from: RemoteMemory) -> Result<Self, Failed> {
        let into = from.check_room(into.into())?;
        Ok(Self(WorkRequest::read(0, from.address(), from.rkey(), into)))
    }
}

impl CompareSwap {
    /// Makes a request to replace the word at the beginning of the remote memory by `swap`, if the
    /// word equals `compare`.
    ///
    /// # Errors
    /// Returns an error when the memory does not begin with an aligned word of 8 bytes.
    #[inline]
    pub fn new(word: RemoteMemory, compare: u64, swap: u64) -> Result<Self, Failed> {
        word.check_word()?;
        Ok(Self(WorkRequest::compare_swap(0, word.address(), word.rkey(), compare, swap)))
    }
}

impl FetchAdd {
    /// Makes a request to add a number to the word at the beginning of the remote memory.
    ///
    /// # Errors
    /// Returns an error when the memory does not begin with an aligned word of 8 bytes.
    #[inline]
    pub fn new(word: RemoteMemory, add: u64) -> Result<Self, Failed> {
        word.check_word()?;
        Ok(Self(WorkRequest::fetch_add(0, word.address(), word.rkey(), add)))
    }
}
