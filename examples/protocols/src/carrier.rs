//! What carries the bytes: a byte stream of Doorbell, over UDP or shared memory, or TCP.

use std::io;

use clap::ValueEnum;
use doorbell::bytestream::{self, ServiceId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A connected stream, as a server or a client of any protocol takes it.
pub type Wire = Box<dyn Bytes>;

/// The traits that protocols need of a stream. `doorbell::bytestream::Stream` has it, as `TcpStream` does.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A kind of carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Carrier {
    /// Byte streams over UDP, of this machine.
    Udp,
    /// Byte streams over shared memory.
    Shm,
    /// TCP, of this machine, for comparison.
    Tcp,
}

/// Accepts streams of one kind.
pub enum Listener {
    Doorbell(bytestream::Listener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens where nobody else does.
    pub async fn bind(carrier: Carrier) -> io::Result<Self> {
        let service = ServiceId(7);
        Ok(match carrier {
            Carrier::Udp => {
                Self::Doorbell(bytestream::Listener::open("udp:127.0.0.1:0", service).await?)
            }
            Carrier::Shm => Self::Doorbell(bytestream::Listener::open("shm", service).await?),
            Carrier::Tcp => Self::Tcp(TcpListener::bind("127.0.0.1:0").await?),
        })
    }

    /// Returns the name that [`connect`] takes.
    pub fn name(&self) -> io::Result<String> {
        match self {
            Self::Doorbell(listener) => Ok(listener.name().to_string()),
            Self::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
        }
    }

    /// Waits for the next stream.
    pub async fn accept(&mut self) -> io::Result<Wire> {
        Ok(match self {
            Self::Doorbell(listener) => Box::new(listener.accept().await?),
            Self::Tcp(listener) => Box::new(prompt(listener.accept().await?.0)?),
        })
    }
}

/// Opens a stream to the listener with a name.
pub async fn connect(carrier: Carrier, name: &str) -> io::Result<Wire> {
    Ok(match carrier {
        Carrier::Udp | Carrier::Shm => Box::new(bytestream::Stream::connect(name).await?),
        Carrier::Tcp => Box::new(prompt(TcpStream::connect(name).await?)?),
    })
}

/// Has short writes leave at once, as those of byte streams do.
fn prompt(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
