//! [`Security`] as the encryption of a NIC's connections.

use std::sync::Arc;

use doorbell_core::cm::Extensions;
use doorbell_core::connect::{
    Answered, Answering, Encrypt, EncryptionError, NotIdentified, Requesting, Seal, Session,
};

use crate::aead::Suite;
use crate::handshake::{Acceptor, Confirming, Established, Requester};
use crate::pattern::Pattern;
use crate::policy::{Policy, Security};
use crate::session::{Control, PeerIdentity, SessionKeys};

/// The extension that stands for a cipher.
const fn bit_of(suite: Suite) -> Extensions {
    match suite {
        Suite::Aes256Gcm => Extensions::AES_256_GCM,
        Suite::Aes128Gcm => Extensions::AES_128_GCM,
        Suite::ChaCha20Poly1305 => Extensions::CHACHA20_POLY1305,
    }
}

/// The extension that stands for a handshake.
const fn bit_of_pattern(pattern: Pattern) -> Extensions {
    match pattern {
        Pattern::Xx => Extensions::ENCRYPTED_BY_KEYS,
        Pattern::XxPsk3 => Extensions::ENCRYPTED_BY_KEYS_AND_SECRET,
        Pattern::NnPsk0 => Extensions::ENCRYPTED_BY_SECRET,
    }
}

/// Returns the ciphers among extensions.
fn suites_in(extensions: Extensions) -> Vec<Suite> {
    Suite::ALL.into_iter().filter(|suite| extensions.include(bit_of(*suite))).collect()
}

/// Why the two sides can't encrypt, although both want to.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum NoCipher {
    #[error(
        "the peer and this side have no cipher in common: let both use one that is the same \
         (`Security::suites`), of which ChaCha20-Poly1305 is fast everywhere"
    )]
    InCommon,
    #[error("the peer has agreed on no cipher that was offered: is it of another version?")]
    Agreed,
}

/// Returns what was agreed upon as the handshake covers it.
fn terms(agreed: Extensions) -> [u8; 4] {
    agreed.bits().to_be_bytes()
}

impl Encrypt for Security {
    fn offers(&self) -> Extensions {
        if self.demands() == Policy::Off {
            return Extensions::NONE;
        }
        let suites = self.usable_suites().iter().map(|suite| bit_of(*suite));
        suites.fold(bit_of_pattern(self.pattern()), |all, suite| all | suite)
    }

    fn is_required(&self) -> bool {
        self.demands() == Policy::Required
    }

    fn request(
        &self,
        clear: &[u8],
        to: &str,
    ) -> Result<(Box<dyn Requesting>, Vec<u8>), EncryptionError> {
        let (requester, first) = Requester::begin(self, clear)?;
        let requests = Requests { requester, security: self.clone(), to: to.to_owned() };
        Ok((Box::new(requests), first))
    }

    fn answer(
        &self,
        clear: &[u8],
        first: &[u8],
        offered: Extensions,
        from: &str,
    ) -> Result<Answered, EncryptionError> {
        let suite = self.choose_suite(&suites_in(offered)).ok_or(NoCipher::InCommon)?;
        let others = offered.without(Extensions::ENCRYPTION);
        let agreed = others | bit_of_pattern(self.pattern()) | bit_of(suite);
        let (acceptor, message) = Acceptor::answer(self, clear, first, &terms(agreed))?;
        let answering = Box::new(Answers { acceptor, suite, from: from.to_owned() });
        Ok(Answered { answering, agreed, message })
    }
}

/// A requester, and what it needs to know of the request.
struct Requests {
    requester: Requester,
    security: Security,
    to: String,
}

impl Requesting for Requests {
    fn confirm(
        self: Box<Self>,
        second: &[u8],
        agreed: Extensions,
        private: &[u8],
    ) -> Result<(Vec<u8>, Session), EncryptionError> {
        let Self { requester, security, to } = *self;
        let suites = suites_in(agreed);
        let suite = security.choose_suite(&suites).filter(|_| suites.len() == 1);
        let suite = suite.ok_or(NoCipher::Agreed)?;
        let confirming: Confirming = requester.second(second, &terms(agreed), &to)?;
        let peer = confirming.peer();
        let (third, keys) = confirming.third(private)?;
        let to_remember = Some((security, peer, to));
        Ok((third, session(keys, suite, peer, to_remember)))
    }
}

/// An acceptor, and what it needs to know of the request.
struct Answers {
    acceptor: Acceptor,
    suite: Suite,
    from: String,
}

impl Answering for Answers {
    fn identify(self: Box<Self>, third: &[u8]) -> Result<(Session, Vec<u8>), NotIdentified> {
        let Self { acceptor, suite, from } = *self;
        match acceptor.third(third, &from) {
            Ok(Established { keys, peer, private }) => {
                Ok((session(keys, suite, peer, None), private))
            }
            Err(refused) => {
                let control = refused.keys.map(|keys| -> Box<dyn Seal> {
                    Box::new(Seals { control: keys.into_control(), to_remember: None })
                });
                Err(NotIdentified { why: refused.why.into(), control })
            }
        }
    }
}

/// Makes a session of the keys that follow from a handshake.
fn session(
    keys: SessionKeys,
    suite: Suite,
    peer: PeerIdentity,
    to_remember: Option<(Security, PeerIdentity, String)>,
) -> Session {
    let (keys, control) = keys.into_keys(suite);
    let proved: Arc<str> = peer.to_string().into();
    Session::new(keys, Box::new(Seals { control, to_remember }), proved)
}

/// The keys that seal the messages that manage a connection.
#[derive(Debug)]
struct Seals {
    control: Control,
    /// A key that is trusted at first use, and by whom, once the peer has proved that it has the
    /// session's keys.
    to_remember: Option<(Security, PeerIdentity, String)>,
}

impl Seal for Seals {
    fn seal(&mut self, kind: u8, bytes: &[u8]) -> Vec<u8> {
        self.control.seal(kind, bytes)
    }

    fn open(&self, kind: u8, sealed: &[u8]) -> Option<Vec<u8>> {
        self.control.open(kind, sealed)
    }

    fn proved(&mut self) {
        if let Some((security, peer, from)) = self.to_remember.take()
            && let Err(why) = security.remember(&peer, &from)
        {
            tracing::warn!(%from, %why, "a key was not remembered");
        }
    }
}
