//! TLS, by tokio-rustls. The certificate is made by rcgen.
//!
//! The server sends its certificate in front of the handshake, so that the client knows the one
//! that was made for this run. Where there is a certificate authority, the client knows that one.

use std::sync::Arc;

use anyhow::ensure;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::carrier::Wire;

const NAME: &str = "doorbell.example";

/// How many bytes are sent while as many come back.
const LONG: usize = 5_000_000;

/// Sends back what comes.
pub async fn serve(mut wire: Wire) -> anyhow::Result<()> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let chain = vec![cert.der().clone()];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    wire.write_u32(cert.der().len() as u32).await?;
    wire.write_all(cert.der()).await?;

    let stream = TlsAcceptor::from(Arc::new(config)).accept(wire).await?;
    let (mut reads, mut writes) = split(stream);
    copy(&mut reads, &mut writes).await?;
    Ok(writes.shutdown().await?)
}

pub async fn ask(mut wire: Wire) -> anyhow::Result<String> {
    let len = wire.read_u32().await?;
    let mut certificate = vec![0; len as usize];
    wire.read_exact(&mut certificate).await?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate))?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();

    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from(NAME)?, wire).await?;
    let version = stream.get_ref().1.protocol_version();
    let (mut reads, mut writes) = split(stream);
    let sends = tokio::spawn(async move {
        let bytes: Vec<u8> = (0..LONG).map(|at| at as u8).collect();
        writes.write_all(&bytes).await?;
        writes.shutdown().await
    });
    let mut found = Vec::new();
    reads.read_to_end(&mut found).await?;
    sends.await??;
    let is_right = found.iter().enumerate().all(|(at, byte)| *byte == at as u8);
    ensure!(found.len() == LONG && is_right, "{} bytes", found.len());
    let version = version.and_then(|version| version.as_str()).unwrap_or("a version of TLS");
    Ok(format!("{LONG} bytes came back by {version}"))
}
