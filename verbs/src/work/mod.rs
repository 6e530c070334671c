//! Requests, each of which takes only what can go with it.
//!
//! ```
//! use doorbell::verbs::work::{Read, Send, Write};
//! use doorbell::verbs::{Buf, Imm, RemoteMemory};
//!
//! let memory: RemoteMemory = "7f0012345000+4096@8c0ffee1".parse()?;
//! let _ = Send::new(b"hello").imm(Imm(7)).solicited();
//! let _ = Write::new(b"hello", memory)?.unsignalled();
//! let _ = Read::new(Buf::with_capacity(4096), memory)?.fenced();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A write may have an immediate, and a read has none:
//!
//! ```
//! # use doorbell::verbs::work::{Read, Write};
//! # use doorbell::verbs::{Buf, Imm, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Write::new(Buf::with_capacity(4096), memory).unwrap().imm(Imm(7));
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use doorbell::verbs::work::{Read, Write};
//! # use doorbell::verbs::{Buf, Imm, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Read::new(Buf::with_capacity(4096), memory).unwrap().imm(Imm(7));
//! }
//! ```
//!
//! An atomic operation has a number, and no data:
//!
//! ```
//! # use doorbell::verbs::work::FetchAdd;
//! # use doorbell::verbs::{Buf, RemoteMemory};
//! fn add(memory: RemoteMemory) {
//!     let _ = FetchAdd::new(memory, 8);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use doorbell::verbs::work::FetchAdd;
//! # use doorbell::verbs::{Buf, RemoteMemory};
//! fn add(memory: RemoteMemory) {
//!     let _ = FetchAdd::new(memory, Buf::with_capacity(8));
//! }
//! ```
//!
//! Who sends takes no key of his own back, and nobody's but by a send:
//!
//! ```
//! # use doorbell::verbs::work::{Send, Write};
//! # use doorbell::verbs::{Buf, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Send::new(Buf::with_capacity(4096)).invalidate(memory);
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use doorbell::verbs::work::{Send, Write};
//! # use doorbell::verbs::{Buf, RemoteMemory};
//! fn request(memory: RemoteMemory) {
//!     let _ = Write::new(Buf::with_capacity(4096), memory).unwrap().invalidate(memory);
//! }
//! ```
//!
//! A buffer is the program's until it is posted, and the NIC's from then until its request is
//! complete:
//!
//! ```
//! # use doorbell::verbs::work::Send;
//! # use doorbell::verbs::{Buf, Refused, SendQueue, WorkRequest};
//! fn post(queue: &mut SendQueue, mut buf: Buf) -> Result<(), Refused<WorkRequest>> {
//!     buf[0] = 1;
//!     queue.post(Send::new(buf))
//! }
//! ```
//!
//! ```compile_fail,E0382
//! # use doorbell::verbs::work::Send;
//! # use doorbell::verbs::{Buf, Refused, SendQueue, WorkRequest};
//! fn post(queue: &mut SendQueue, mut buf: Buf) -> Result<(), Refused<WorkRequest>> {
//!     let posted = queue.post(Send::new(buf));
//!     buf[0] = 1;
//!     posted
//! }
//! ```

use doorbell_core::nic::{Data, Inline, Memory, WorkRequest};
use doorbell_core::wire::{Imm, Metadata};

use crate::datagrams::Destination;
use crate::error::Failed;
use crate::memory::RemoteMemory;

/// Declares a kind of request, with what all kinds can be.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "a request does nothing unless it is posted"]
        pub struct $name(WorkRequest);

        impl $name {
            /// The same with a number of the program's own, which comes back with the completion.
            #[inline]
            pub fn id(self, id: u64) -> Self {
                Self(WorkRequest { id, ..self.0 })
            }

            /// The same, its success told to nobody.
            #[inline]
            pub fn unsignalled(self) -> Self {
                Self(self.0.unsignalled())
            }

            /// The same, hastened, for somebody waits for it.
            #[inline]
            pub fn awaited(self) -> Self {
                Self(self.0.awaited())
            }

            /// The same, behind all reads and atomic operations before it: else a read may be
            /// answered with what a write behind it has put there.
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

/// Adds what those can be of which the peer's receives tell.
macro_rules! told_of {
    ($($name:ident)+) => {$(
        impl $name {
            /// The same with an immediate, which completes a receive of the peer's.
            #[inline]
            pub fn imm(self, imm: Imm) -> Self {
                Self(self.0.with_imm(imm))
            }

            /// The same, waking a peer that sleeps until somebody asks for that.
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
    /// The exchange of a word of the peer's, if it is as expected.
    CompareSwap
    /// An addition to a word of the peer's.
    FetchAdd
    /// A datagram, to whom it names.
    Datagram
}

impl Datagram {
    /// A datagram of these bytes, which must fit into one packet, to a destination that is to be
    /// kept until this is complete.
    #[inline]
    pub fn new(data: impl Into<Data>, to: &Destination) -> Self {
        Self(WorkRequest::datagram(0, to.named(), data))
    }
}

impl Send {
    /// A message of these bytes.
    #[inline]
    pub fn new(data: impl Into<Data>) -> Self {
        Self(WorkRequest::send(0, data))
    }

    /// A message of a few bytes, of which a copy travels in the request.
    ///
    /// # Errors
    /// When they are more than 64.
    #[inline]
    pub fn inline(bytes: &[u8]) -> Result<Self, Failed> {
        Inline::new(bytes).map(Self::new).ok_or_else(|| Failed::too_long(bytes.len()))
    }

    /// The same, taking a key of the receiver's back, which it has given with the right to that.
    #[inline]
    pub fn invalidate(self, memory: RemoteMemory) -> Self {
        Self(self.0.with_invalidate(memory.rkey()))
    }
}

impl Write {
    /// A write of these bytes to the beginning of that memory.
    ///
    /// # Errors
    /// When they are more than that.
    #[inline]
    pub fn new(data: impl Into<Data>, to: RemoteMemory) -> Result<Self, Failed> {
        Ok(Self(WorkRequest::write(0, to.address(), to.rkey(), to.check(data.into())?)))
    }

    /// A write of a few bytes, of which a copy travels in the request.
    ///
    /// # Errors
    /// When they are more than 64, or than the memory.
    #[inline]
    pub fn inline(bytes: &[u8], to: RemoteMemory) -> Result<Self, Failed> {
        let data = Inline::new(bytes).ok_or_else(|| Failed::too_long(bytes.len()))?;
        Self::new(data, to)
    }

    /// The same with up to sixteen bytes in the completion of the peer's receive.
    #[inline]
    pub fn metadata(self, metadata: Metadata) -> Self {
        Self(self.0.with_metadata(metadata))
    }
}

impl Read {
    /// A read from the beginning of that memory, of as much as `into` has room for.
    ///
    /// # Errors
    /// When that is more than there is.
    #[inline]
    pub fn new(into: impl Into<Memory>, from: RemoteMemory) -> Result<Self, Failed> {
        let into = from.check_room(into.into())?;
        Ok(Self(WorkRequest::read(0, from.address(), from.rkey(), into)))
    }
}

impl CompareSwap {
    /// An exchange of the word there for `swap` if it is `compare`.
    ///
    /// # Errors
    /// When that memory does not begin with one, whole and aligned.
    #[inline]
    pub fn new(word: RemoteMemory, compare: u64, swap: u64) -> Result<Self, Failed> {
        word.check_word()?;
        Ok(Self(WorkRequest::compare_swap(0, word.address(), word.rkey(), compare, swap)))
    }
}

impl FetchAdd {
    /// An addition to the word there.
    ///
    /// # Errors
    /// When that memory does not begin with one, whole and aligned.
    #[inline]
    pub fn new(word: RemoteMemory, add: u64) -> Result<Self, Failed> {
        word.check_word()?;
        Ok(Self(WorkRequest::fetch_add(0, word.address(), word.rkey(), add)))
    }
}
