//! Streams, whole and in halves, as Tokio reads and writes them.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use doorbell_verbs::{Config as NicConfig, Nic};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::closing::Open;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::of_nic;
use crate::halves::{Reader, Writer};
use crate::link::Link;
use crate::name::{device_towards, parse};

/// A byte stream to a peer, both ways.
///
/// What is written arrives in order and once, or the stream fails. A stream that is dropped sends
/// what was written before, for as long as [configured](Config::linger), and then its end;
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) waits until the peer has all of it.
pub struct Stream {
    reader: Reader,
    writer: Writer,
    open: Arc<Open>,
}

impl Stream {
    pub(crate) fn new(open: Open) -> Self {
        let (reader, writer) = (Reader::new(&open.link), Writer::new(&open.link));
        Self { reader, writer, open: Arc::new(open) }
    }

    /// Opens a stream to a listener by its [name](crate::Listener::local_name), with a NIC and an
    /// endpoint that are for this stream alone. A program with more than a few streams opens an
    /// [`Endpoint`] once, and [connects](Endpoint::connect) by that.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; and when the address is that of a raw Ethernet device, which is
    /// reached from an interface that must be said.
    pub async fn connect(name: &str) -> io::Result<Self> {
        let device = device_towards(parse(name)?.0)?;
        let small =
            NicConfig { queue_pairs: 8, registrations: 8, completions: 64, ..NicConfig::default() };
        let nic = Nic::open_async(&device, small).await.map_err(of_nic)?;
        let config = Config { completions: 256, ..Config::default() };
        Endpoint::on(&nic, &config)?.connect(name).await
    }

    /// The peer: the name by which it was connected to; of a stream that was accepted, the address
    /// of the peer's NIC, where the device has such addresses.
    pub fn peer_name(&self) -> &str {
        self.open.link.peer()
    }

    /// The address of the peer's NIC, on a device that has such addresses.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.open.link.connection.peer_address()
    }

    /// The endpoint.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint(self.open.owner.clone())
    }

    /// Splits the stream into halves that borrow it.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        let Self { reader, writer, open } = self;
        (ReadHalf { reader, link: &open.link }, WriteHalf { writer, link: &open.link })
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
    link: &'s Arc<Link>,
}

/// The writing half of a stream that is [split](Stream::split).
pub struct WriteHalf<'s> {
    writer: &'s mut Writer,
    link: &'s Arc<Link>,
}

/// The reading half of a stream that was [taken apart](Stream::into_split).
pub struct OwnedReadHalf {
    reader: Reader,
    open: Arc<Open>,
}

/// The writing half of a stream that was [taken apart](Stream::into_split). When it is dropped, the
/// stream ends in that direction, behind all that was written.
pub struct OwnedWriteHalf {
    /// There until it is reunited, or dropped.
    writer: Option<Writer>,
    open: Arc<Open>,
}

impl OwnedReadHalf {
    /// Puts the halves of a stream together again.
    ///
    /// # Errors
    /// When they are of different streams; the error has them.
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

/// Two halves that are not of one stream.
#[derive(Debug, Error)]
#[error("the two halves are of different byte streams")]
pub struct ReuniteError(pub Box<(OwnedReadHalf, OwnedWriteHalf)>);

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.open.link.outbound.finish(&self.open.link);
        }
    }
}

/// Declares what shows and reads a stream, or a half of one.
macro_rules! reads {
    ($($name:ty, $of:ident => ($reader:expr, $link:expr);)+) => {$(
        impl AsyncRead for $name {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                $reader.poll_read($link, context, into)
            }
        }
    )+};
}

reads! {
    Stream, this => (this.reader, &this.open.link);
    ReadHalf<'_>, this => (this.reader, this.link);
    OwnedReadHalf, this => (this.reader, &this.open.link);
}

/// Declares what writes a stream, or a half of one.
macro_rules! writes {
    ($($name:ty, $of:ident => ($writer:expr, $link:expr);)+) => {$(
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
                $writer.poll_write($link, context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Sends at once what waits for company: what was written is on its way then.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                let link: &Link = $link;
                link.outbound.flush();
                Poll::Ready(Ok(()))
            }

            /// Ends the stream in this direction, and waits until the peer's NIC has all that was
            /// written, whether its program has read that or not.
            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                let $of = self.get_mut();
                $writer.poll_shutdown($link, context)
            }
        }
    )+};
}

writes! {
    Stream, this => (this.writer, &this.open.link);
    WriteHalf<'_>, this => (this.writer, this.link);
    OwnedWriteHalf, this =>
        (this.writer.as_mut().expect("it is there until it is dropped"), &this.open.link);
}

/// Declares how a stream, or a half of one, is shown.
macro_rules! shows {
    ($($name:ty, $text:literal, $of:ident => $link:expr;)+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $of = self;
                let link: &Link = $link;
                f.debug_struct($text)
                    .field("peer", &link.peer())
                    .field("qpn", &link.connection.qpn())
                    .finish_non_exhaustive()
            }
        }
    )+};
}

shows! {
    Stream, "Stream", this => &this.open.link;
    ReadHalf<'_>, "ReadHalf", this => this.link;
    WriteHalf<'_>, "WriteHalf", this => this.link;
    OwnedReadHalf, "OwnedReadHalf", this => &this.open.link;
    OwnedWriteHalf, "OwnedWriteHalf", this => &this.open.link;
}
