//! Streams, whole and in halves, as Tokio reads and writes them.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::closing::Open;
use super::halves::{Reader, Writer};

/// A byte stream between this program and a peer, in both directions.
///
/// What is written arrives in order and once, or the stream fails. A stream that is dropped sends
/// what was written before, for as long as [configured](crate::Config::linger), and then its end;
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) waits until the peer has all of it.
pub struct Stream {
    reader: Reader,
    writer: Writer,
    pub(crate) open: Arc<Open>,
}

impl Stream {
    pub(crate) fn new(open: Open) -> Self {
        let (reader, writer) = (Reader::new(&open.link), Writer::new(&open.link));
        Self { reader, writer, open: Arc::new(open) }
    }

    /// Returns the name of the peer. For a stream that this program opened, that is the name of the
    /// listener; for a stream that was accepted, the address of the peer's NIC, where the device
    /// has such addresses.
    pub fn peer_name(&self) -> &str {
        self.open.link.common.peer()
    }

    /// The address of the peer's NIC, on a device that has such addresses.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.open.link.common.connection.peer_address()
    }

    /// Splits the stream into halves that borrow the stream.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        let Self { reader, writer, open } = self;
        (ReadHalf { reader, open }, WriteHalf { writer, open })
    }

    /// Splits the stream into halves that may go to tasks of their own. When the writing half is
    /// dropped, the stream ends in that direction.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let Self { reader, writer, open } = self;
        let write = OwnedWriteHalf { writer: Some(writer), open: open.clone() };
        (OwnedReadHalf { reader, open }, write)
    }
}

/// The reading half of a stream that is [split](Stream::split).
pub struct ReadHalf<'s> {
    reader: &'s mut Reader,
    open: &'s Open,
}

/// The writing half of a stream that is [split](Stream::split).
pub struct WriteHalf<'s> {
    writer: &'s mut Writer,
    open: &'s Open,
}

/// The reading half of a stream that was [taken apart](Stream::into_split).
pub struct OwnedReadHalf {
    reader: Reader,
    open: Arc<Open>,
}

/// The writing half of a stream that was [taken apart](Stream::into_split). When it is dropped, the
/// stream ends in that direction, behind all that was written.
pub struct OwnedWriteHalf {
    /// `None` only after the half was reunited.
    writer: Option<Writer>,
    open: Arc<Open>,
}

impl OwnedReadHalf {
    /// Puts the halves of a stream together again.
    ///
    /// # Errors
    /// When the halves are of different streams. The error gives the halves back.
    pub fn reunite(self, mut write: OwnedWriteHalf) -> Result<Stream, ReuniteError> {
        match write.writer.take() {
            Some(writer) if Arc::ptr_eq(&self.open, &write.open) => {
                Ok(Stream { reader: self.reader, writer, open: self.open })
            }
            writer => {
                write.writer = writer;
                Err(ReuniteError(Box::new((self, write))))
            }
        }
    }
}

/// The error of reuniting two halves that are of different streams. Contains both halves.
#[derive(Debug, Error)]
#[error("the two halves are of different byte streams")]
pub struct ReuniteError(pub Box<(OwnedReadHalf, OwnedWriteHalf)>);

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.writer.is_some() {
            let link = &self.open.link;
            link.outbound.finish(&link.common);
        }
    }
}

/// Implements reading for a stream, or for a half of one.
macro_rules! reads {
    ($($name:ty, $of:ident => ($reader:expr, $open:expr);)+) => {$(
        impl AsyncRead for $name {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                let open: &Open = $open;
                $reader.poll_read(&open.owner.hub, &open.link, context, into)
            }
        }
    )+};
}

reads! {
    Stream, this => (this.reader, &this.open);
    ReadHalf<'_>, this => (this.reader, this.open);
    OwnedReadHalf, this => (this.reader, &this.open);
}

/// Implements writing for a stream, or for a half of one.
macro_rules! writes {
    ($($name:ty, $of:ident => ($writer:expr, $open:expr);)+) => {$(
        impl AsyncWrite for $name {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.poll_write_vectored(context, &[IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $of = self.get_mut();
                let open: &Open = $open;
                $writer.poll_write(&open.owner.hub, &open.link, context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Rings the doorbell for all bytes that were written, so that they are on their way.
            /// Short writes behind others that are not acknowledged go when those are.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                let open: &Open = $open;
                open.link.outbound.flush();
                Poll::Ready(Ok(()))
            }

            /// Ends the stream in this direction, and waits until the peer's NIC has received all
            /// that was written, whether or not the peer's program has read it.
            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                let open: &Open = $open;
                $writer.poll_shutdown(&open.owner.hub, &open.link, context)
            }
        }
    )+};
}

writes! {
    Stream, this => (this.writer, &this.open);
    WriteHalf<'_>, this => (this.writer, this.open);
    OwnedWriteHalf, this =>
        (this.writer.as_mut().expect("only a reunited half has no writer"), &this.open);
}

/// Implements `Debug` for a stream, or for a half of one.
macro_rules! shows {
    ($($name:ty, $text:literal, $of:ident => $open:expr;)+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $of = self;
                let open: &Open = $open;
                f.debug_struct($text)
                    .field("peer", &open.link.common.peer())
                    .field("qpn", &open.link.common.connection.qpn())
                    .finish_non_exhaustive()
            }
        }
    )+};
}

shows! {
    Stream, "Stream", this => &this.open;
    ReadHalf<'_>, "ReadHalf", this => this.open;
    WriteHalf<'_>, "WriteHalf", this => this.open;
    OwnedReadHalf, "OwnedReadHalf", this => &this.open;
    OwnedWriteHalf, "OwnedWriteHalf", this => &this.open;
}
