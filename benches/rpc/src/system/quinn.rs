//! quinn: a QUIC stream for each caller, which stays open, with messages that begin with their
//! length.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::{Bytes, BytesMut};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use socket2::SockRef;

use super::{Address, Caller, Connection, Place, Serving};
use crate::case::LONGEST;

/// The name in the server's certificate.
const NAME: &str = "bench";

/// The most streams of a connection, beyond the callers of every case.
const STREAMS: u32 = 1024;

/// The windows of a stream and of the connection, which hold all that is in flight.
const WINDOW: u32 = 16 << 20;

/// The buffers of a UDP socket, as quinn's own measurements have them.
const SOCKET_BUFFER: usize = 2 << 20;

/// The bytes in front of a datagram's payload in an IPv4 packet.
const HEADERS: u16 = 28;

/// The longest UDP datagram that quinn may send, in bytes. quinn gives the kernel up to ten
/// datagrams in one call where the kernel cuts them, and takes no notice if they are more together
/// than a UDP packet may be: they are lost.
const LONGEST_DATAGRAM: u16 = (u16::MAX - HEADERS) / 10;

fn transport(place: &Place) -> Arc<TransportConfig> {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound((place.mtu - HEADERS).min(LONGEST_DATAGRAM));
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(STREAMS.into())
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(u64::from(WINDOW))
        .mtu_discovery_config(Some(discovery));
    Arc::new(config)
}

fn socket(place: &Place) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind((place.address(), 0)).context("a UDP socket")?;
    let options = SockRef::from(&socket);
    options
        .set_send_buffer_size(SOCKET_BUFFER)
        .and_then(|()| options.set_recv_buffer_size(SOCKET_BUFFER))
        .context("buffers for a UDP socket")?;
    Ok(socket)
}

fn endpoint(place: &Place, server: Option<ServerConfig>) -> anyhow::Result<Endpoint> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(u16::MAX - HEADERS).context("the longest datagram")?;
    let endpoint = Endpoint::new(config, server, socket(place)?, Arc::new(TokioRuntime));
    endpoint.context("a QUIC endpoint")
}

pub fn serve(place: &Place) -> anyhow::Result<Serving> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()]).context("a certificate")?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let certificate = own.cert.der().clone();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let mut config = config.context("configuring TLS")?;
    config.transport_config(transport(place));
    let endpoint = endpoint(place, Some(config))?;
    let at = endpoint.local_addr().context("the endpoint's address")?.to_string();
    let address = Address { at, certificate: Some(certificate.to_vec()) };
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(async move {
                // An error ends the connection, which the client reports.
                if let Ok(connection) = incoming.await {
                    while let Ok((send, receive)) = connection.accept_bi().await {
                        tokio::spawn(answer(send, receive));
                    }
                }
            });
        }
    });
    Ok(Serving::new(address, endpoint))
}

/// Answers the calls of a stream until the stream ends.
async fn answer(mut send: SendStream, mut receive: RecvStream) -> anyhow::Result<()> {
    loop {
        let body = read(&mut receive).await?;
        write(&mut send, body).await?;
    }
}

async fn write(send: &mut SendStream, body: Bytes) -> anyhow::Result<()> {
    let length = u32::try_from(body.len()).context("a body too long for its length")?;
    let head = Bytes::copy_from_slice(&length.to_be_bytes());
    Ok(send.write_all_chunks(&mut [head, body]).await?)
}

/// Reads a message, without a copy if its body has come as a whole.
async fn read(receive: &mut RecvStream) -> anyhow::Result<Bytes> {
    let mut length = [0; 4];
    receive.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length) as usize;
    ensure!(length <= LONGEST, "a message of {length} bytes came; the longest are {LONGEST}");
    let mut gathered = BytesMut::new();
    while gathered.len() < length {
        let chunk = receive.read_chunk(length - gathered.len(), true).await?;
        let chunk = chunk.context("a stream ended within a message")?.bytes;
        if chunk.len() == length {
            return Ok(chunk);
        }
        gathered.reserve(length - gathered.len());
        gathered.extend_from_slice(&chunk);
    }
    Ok(gathered.freeze())
}

pub async fn connect(place: &Place, server: &Address) -> anyhow::Result<Connected> {
    let certificate = server.certificate.clone().context("a server without a certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate)).context("the server's certificate")?;
    let mut config =
        ClientConfig::with_root_certificates(Arc::new(roots)).context("configuring TLS")?;
    config.transport_config(transport(place));
    let endpoint = endpoint(place, None)?;
    let at: SocketAddr = server.at.parse().context("the server's address")?;
    let connection = endpoint.connect_with(config, at, NAME).context("connecting")?.await;
    let connection = connection.with_context(|| format!("connecting to {at}"))?;
    Ok(Connected { connection })
}

pub struct Connected {
    connection: quinn::Connection,
}

impl Connection for Connected {
    type Caller = Stream;

    async fn caller(&self) -> anyhow::Result<Stream> {
        let (send, receive) = self.connection.open_bi().await.context("opening a stream")?;
        Ok(Stream { send, receive })
    }
}

/// A stream on which one call is in flight at a time.
pub struct Stream {
    send: SendStream,
    receive: RecvStream,
}

impl Caller for Stream {
    async fn echo(&mut self, body: Bytes) -> anyhow::Result<Bytes> {
        write(&mut self.send, body).await?;
        read(&mut self.receive).await
    }
}
