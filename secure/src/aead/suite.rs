//! The suites: which AEAD algorithm encrypts the packets of a connection.

use std::fmt;

use aws_lc_rs::aead;

/// An AEAD algorithm that encrypts packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suite {
    /// AES-GCM with a key of 256 bits: fast on processors that have instructions for AES.
    Aes256Gcm,
    /// AES-GCM with a key of 128 bits: about a fifth faster than with 256 bits.
    Aes128Gcm,
    /// ChaCha20-Poly1305 (RFC 8439): fast on every processor.
    ChaCha20Poly1305,
}

impl Suite {
    /// The list of all suites: those of AES first, the one with the longer key in front.
    pub const ALL: [Self; 3] = [Self::Aes256Gcm, Self::Aes128Gcm, Self::ChaCha20Poly1305];

    /// Returns the suites that this processor computes fast, the preferred one first. Without
    /// instructions for AES, the only suite is ChaCha20-Poly1305: AES in plain code is slow.
    pub fn fast_here() -> &'static [Self] {
        if has_aes() { &Self::ALL } else { &[Self::ChaCha20Poly1305] }
    }

    /// Returns the name of the algorithm, such as `AES-256-GCM`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-GCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    /// Returns how many packets may be encrypted with one key. For AES-GCM the limit is the
    /// confidentiality limit of RFC 9001, section 6.6. ChaCha20-Poly1305 has no such limit within
    /// reach, and the number here is only so large that a key still changes now and then.
    pub(super) const fn most_packets(self) -> u64 {
        match self {
            Self::Aes256Gcm | Self::Aes128Gcm => 1 << 23,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    pub(super) fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether this processor has instructions for AES and for the multiplication that GCM needs.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    // On this architecture the feature `aes` includes the carry-less multiplication.
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
