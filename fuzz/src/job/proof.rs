//! The proof that somebody knows the secret of a job, made here once more.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The proof of a side, `process` or `service`, for a process of a rank, to be met at a port.
pub fn proof(side: &str, rank: &str, size: &str, port: u16, nonces: [&str; 2]) -> String {
    let [process, service] = nonces;
    let about = format!("doorbell job {side} {rank} {size} {port} {process} {service}");
    let mut mac = Hmac::<Sha256>::new_from_slice(super::SECRET.as_bytes()).expect("a key");
    mac.update(about.as_bytes());
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
