//! What a process demands of its connections: whether they are encrypted, how it proves who it is,
//! and which peers it trusts.

use std::fmt;
use std::sync::Arc;

use crate::aead::Suite;
use crate::error::HandshakeError;
use crate::identity::{Allowed, FirstUse, PrivateKey, PublicKey, Secret};
use crate::pattern::Pattern;
use crate::session::PeerIdentity;

/// Whether connections are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// No connection is encrypted.
    Off,
    /// A connection is encrypted if the peer can do so. Somebody who changes packets on their way
    /// can make each side believe that the other one can't.
    Offered,
    /// Every connection is encrypted: a peer that can't do so is refused.
    #[default]
    Required,
}

/// The choice of public keys that a process trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Every key is trusted. Connections are protected from those who only listen, and not from
    /// those who answer in a peer's place.
    Anyone,
    /// The keys of a set are trusted.
    Allowed(Allowed),
    /// The key that an address first had is trusted from then on.
    FirstUse(FirstUse),
}

impl Trust {
    /// Checks that the peer at an address may have the key that it has proved to have. An address
    /// that is new is not remembered yet.
    ///
    /// # Errors
    /// When the key is not trusted.
    pub(crate) fn check(&self, key: PublicKey, from: &str) -> Result<(), HandshakeError> {
        match self {
            Self::Anyone => Ok(()),
            Self::Allowed(allowed) if allowed.contains(&key) => Ok(()),
            Self::Allowed(allowed) => Err(HandshakeError::UnknownKey {
                from: from.to_owned(),
                key,
                place: allowed.place(),
            }),
            Self::FirstUse(first) => match first.key(from) {
                Some(known) if known != key => Err(changed(first, from, known, key)),
                Some(_) | None => Ok(()),
            },
        }
    }

    /// Checks a key like [`check`](Self::check), and remembers it if the address is new.
    ///
    /// # Errors
    /// When the key is not trusted, or can't be remembered.
    pub(crate) fn remember(&self, key: PublicKey, from: &str) -> Result<(), HandshakeError> {
        let Self::FirstUse(first) = self else { return self.check(key, from) };
        match first.remember(from, key)? {
            known if known == key => Ok(()),
            known => Err(changed(first, from, known, key)),
        }
    }
}

fn changed(first: &FirstUse, from: &str, known: PublicKey, key: PublicKey) -> HandshakeError {
    HandshakeError::ChangedKey { from: from.to_owned(), known, key, remedy: first.remedy() }
}

/// The proof that a process gives of who it is.
pub(crate) enum Proof {
    Key(PrivateKey),
    Secret(Secret),
    KeyAndSecret(PrivateKey, Secret),
}

/// What a process demands of its connections, and how it proves who it is. Clones share the keys.
///
/// ```
/// use doorbell_secure::{Allowed, Policy, PrivateKey, Security, Suite, Trust};
///
/// let mut allowed = Allowed::new();
/// allowed.insert(PrivateKey::generate()?.public(), Some("store-1"));
/// let security = Security::by_key(PrivateKey::generate()?, Trust::Allowed(allowed))
///     .policy(Policy::Required)
///     .suites(&[Suite::ChaCha20Poly1305]);
/// println!("{security:?}");
/// # Ok::<(), doorbell_secure::IdentityError>(())
/// ```
#[derive(Clone)]
pub struct Security {
    proof: Arc<Proof>,
    trust: Arc<Trust>,
    policy: Policy,
    suites: Arc<[Suite]>,
}

impl Security {
    /// Makes the security of connections, both sides of which prove who they are by a private key.
    pub fn by_key(key: PrivateKey, trust: Trust) -> Self {
        Self::new(Proof::Key(key), trust)
    }

    /// Makes the security of connections, both sides of which prove that they know a shared secret.
    /// Whoever knows the secret is trusted.
    pub fn by_secret(secret: Secret) -> Self {
        Self::new(Proof::Secret(secret), Trust::Anyone)
    }

    /// Makes the security of connections, both sides of which prove who they are by a private key,
    /// and that they know a shared secret.
    pub fn by_key_and_secret(key: PrivateKey, secret: Secret, trust: Trust) -> Self {
        Self::new(Proof::KeyAndSecret(key, secret), trust)
    }

    fn new(proof: Proof, trust: Trust) -> Self {
        Self {
            proof: Arc::new(proof),
            trust: Arc::new(trust),
            policy: Policy::default(),
            suites: Suite::fast_here().into(),
        }
    }

    /// Sets whether connections are encrypted. By default they must be.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the suites that this process can use, the preferred one first. By default, and if the
    /// list is empty, they are those of [`Suite::fast_here`].
    #[must_use]
    pub fn suites(mut self, suites: &[Suite]) -> Self {
        self.suites = if suites.is_empty() { Suite::fast_here() } else { suites }.into();
        self
    }

    /// Returns whether connections are encrypted.
    pub fn demands(&self) -> Policy {
        self.policy
    }

    /// Returns the suites that this process can use, the preferred one first.
    pub fn usable_suites(&self) -> &[Suite] {
        &self.suites
    }

    /// Returns the suite that this process prefers among those that the peer can use, or `None` if
    /// there is none in common.
    pub fn choose_suite(&self, offered: &[Suite]) -> Option<Suite> {
        self.suites.iter().copied().find(|suite| offered.contains(suite))
    }

    /// Returns the Noise pattern of handshakes, which follows from how this process proves who it
    /// is.
    pub fn pattern(&self) -> Pattern {
        match *self.proof {
            Proof::Key(_) => Pattern::Xx,
            Proof::Secret(_) => Pattern::NnPsk0,
            Proof::KeyAndSecret(..) => Pattern::XxPsk3,
        }
    }

    /// Returns the public key of this process, or `None` if it has only a shared secret.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.private_key().map(PrivateKey::public)
    }

    /// Returns which public keys are trusted.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Remembers the key of a peer for [`Trust::FirstUse`], and does nothing for other kinds of
    /// trust. The requester calls this method when the acceptor's sealed answer to the third
    /// message has come: only that answer proves that the acceptor knows the shared secret, if
    /// there is one.
    ///
    /// # Errors
    /// When the address is known by another key by now, or when the key can't be remembered.
    pub fn remember(&self, peer: &PeerIdentity, from: &str) -> Result<(), HandshakeError> {
        match *peer {
            PeerIdentity::Key(key) => self.trust.remember(key, from),
            PeerIdentity::Secret => Ok(()),
        }
    }

    pub(crate) fn private_key(&self) -> Option<&PrivateKey> {
        match &*self.proof {
            Proof::Key(key) | Proof::KeyAndSecret(key, _) => Some(key),
            Proof::Secret(_) => None,
        }
    }

    pub(crate) fn secret(&self) -> Option<&Secret> {
        match &*self.proof {
            Proof::Secret(secret) | Proof::KeyAndSecret(_, secret) => Some(secret),
            Proof::Key(_) => None,
        }
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("policy", &self.policy)
            .field("pattern", &self.pattern())
            .field("public_key", &self.public_key())
            .field("trust", &self.trust)
            .field("suites", &self.suites)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_text_of_security_has_the_public_key_and_no_secret() {
        let key = PrivateKey::from_bytes(&[0xAB; 32]);
        let public = key.public().to_string();
        let secret = Secret::new(b"0123456789abcdef").expect("16 bytes");
        let security = Security::by_key_and_secret(key, secret, Trust::Anyone);
        let text = format!("{:?}", security.clone());
        assert!(text.contains(&public) && text.contains("Required"), "{text}");
        assert!(text.contains("XxPsk3"), "{text}");
        assert!(!text.contains("abab") && !text.contains("171, 171"), "{text}");
        assert!(!text.contains("0123456789abcdef"), "{text}");
    }

    #[test]
    fn the_suite_is_the_first_own_one_that_the_peer_can_use_too() {
        let secret = Secret::new(b"0123456789abcdef").expect("16 bytes");
        let security = Security::by_secret(secret);
        assert_eq!(security.usable_suites(), Suite::fast_here());
        assert_eq!(security.clone().suites(&[]).usable_suites(), Suite::fast_here());
        let security = security.suites(&[Suite::Aes128Gcm, Suite::ChaCha20Poly1305]);
        let offered = [Suite::ChaCha20Poly1305, Suite::Aes128Gcm];
        assert_eq!(security.choose_suite(&offered), Some(Suite::Aes128Gcm));
        assert_eq!(security.choose_suite(&[Suite::Aes256Gcm]), None);
    }
}
