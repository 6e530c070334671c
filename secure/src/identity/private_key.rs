//! The private key by which a process proves who it is.

use std::fmt;
use std::path::Path;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

use super::error::IdentityError;
use super::files::{self, Others};
use super::hex;
use super::public_key::PublicKey;
use crate::aead::kdf::Secret32;

/// The first word of a file with a private key.
const MARK: &str = "doorbell-private-key-1";

const WHAT: &str = "private key";

/// A Noise protocol whose keys are for X25519.
const NOISE: &str = "Noise_XX_25519_ChaChaPoly_BLAKE2s";

/// The most bytes of a file with a private key. A valid file has 88.
const MOST: u64 = 256;

/// A private key for X25519, by which a process proves who it is.
///
/// The key is overwritten with zeros when it is dropped, and no `Debug` text shows it.
///
/// ```
/// use doorbell_secure::PrivateKey;
///
/// let key = PrivateKey::generate()?;
/// println!("to be allowed by peers: {}", key.public());
/// # Ok::<(), doorbell_secure::IdentityError>(())
/// ```
#[derive(Clone)]
pub struct PrivateKey {
    bytes: Secret32,
    public: PublicKey,
}

impl PrivateKey {
    /// Draws a new private key from the random numbers of the operating system.
    ///
    /// # Errors
    /// When the operating system gives no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let failed = |why: snow::Error| IdentityError::NoRandomness { why: why.to_string() };
        let params = NOISE.parse().map_err(failed)?;
        let pair = snow::Builder::new(params).generate_keypair().map_err(failed)?;
        let private = Zeroizing::new(pair.private);
        let mut bytes = Zeroizing::new([0; 32]);
        bytes.copy_from_slice(&private);
        Ok(Self::from_bytes(&bytes))
    }

    /// Makes a private key of 32 bytes, which should be uniformly random.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut curve = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .expect("the feature `use-curve25519` of the crate `snow` is on");
        curve.set(bytes);
        let public = curve.pubkey().try_into().expect("a public key of X25519 has 32 bytes");
        Self { bytes: Zeroizing::new(*bytes), public: PublicKey::from_bytes(public) }
    }

    /// Returns the public key that belongs to this private key.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// Reads a private key from a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// When the file can't be read, has no private key, or may be used by others than its owner.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let path = path.as_ref();
        let text = files::read_text(WHAT, path, Others::MayNothing, MOST)?;
        let mut words = text.split_ascii_whitespace();
        match (words.next(), words.next().and_then(hex::decode), words.next()) {
            (Some(MARK), Some(bytes), None) => Ok(Self::from_bytes(&bytes)),
            _ => Err(IdentityError::NotAPrivateKey { path: path.to_owned() }),
        }
    }

    /// Writes this private key to a new file with mode 0600, as one line of text.
    ///
    /// # Errors
    /// When the file can't be written, or when there is a file already, which stays as it is.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), IdentityError> {
        let mut line = Zeroizing::new(String::with_capacity(128));
        line.push_str(MARK);
        line.push(' ');
        line.push_str(&hex::encode_secret(&self.bytes));
        line.push('\n');
        files::create(WHAT, path.as_ref(), line.as_bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}
