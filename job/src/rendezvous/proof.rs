//! Proofs that somebody knows the secret of a job.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The side that proves its knowledge: a proof of one side is none of the other.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    Process,
    Service,
}

/// The statement that a proof is bound to: the connection, and the rank that the process claims.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub rank: usize,
    pub size: usize,
    /// The port of the service: whoever has another port of its host, and passes on what is said
    /// there, is not taken for the service.
    pub port: u16,
    /// The random numbers that the process and the service have drawn for the connection.
    pub nonces: [&'a str; 2],
}

fn mac(secret: &[u8], side: Side, about: About<'_>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    let side = match side {
        Side::Process => "process",
        Side::Service => "service",
    };
    let About { rank, size, port, nonces: [process, service] } = about;
    mac.update(format!("doorbell job {side} {rank} {size} {port} {process} {service}").as_bytes());
    mac
}

/// The proof of a side.
pub fn prove(secret: &[u8], side: Side, about: About<'_>) -> String {
    let bytes = mac(secret, side, about).finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a proof holds. How long that takes does not depend on where it differs.
pub fn holds(proof: &str, secret: &[u8], side: Side, about: About<'_>) -> bool {
    let digits = proof.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    proof.len() == 64
        && bytes.is_some_and(|bytes| mac(secret, side, about).verify_slice(&bytes).is_ok())
}

/// A random number that nobody can guess, as text.
pub fn nonce() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("Linux has random numbers once it has started");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About<'_> = About { rank: 1, size: 4, port: 7, nonces: ["a", "b"] };

    #[test]
    fn a_proof_holds_for_one_secret_one_side_and_one_connection() {
        let proof = prove(b"secret", Side::Process, ABOUT);
        assert!(holds(&proof, b"secret", Side::Process, ABOUT));
        assert!(!holds(&proof, b"another", Side::Process, ABOUT));
        assert!(!holds(&proof, b"secret", Side::Service, ABOUT));
        for other in [
            About { rank: 2, ..ABOUT },
            About { size: 5, ..ABOUT },
            About { port: 8, ..ABOUT },
            About { nonces: ["a", "c"], ..ABOUT },
        ] {
            assert!(!holds(&proof, b"secret", Side::Process, other), "{other:?}");
        }
        for wrong in ["", "zz", &proof[2..], &format!("{proof}00")] {
            assert!(!holds(wrong, b"secret", Side::Process, ABOUT), "{wrong}");
        }
        assert_ne!(nonce(), nonce());
    }
}
