//! The setting of encryption.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorbell_core::cm::Extensions;
use doorbell_core::connect::Encrypt;

/// The encryption of a NIC's connections: none, or whatever implements [`Encrypt`].
///
/// Two are equal if they are both none, or the same object.
#[derive(Clone, Default, Debug)]
pub struct Encryption(Option<Arc<dyn Encrypt>>);

impl Encryption {
    /// The setting with which connections are in the clear.
    pub const OFF: Self = Self(None);

    /// Makes it of what encrypts.
    pub fn by(encrypt: impl Encrypt + 'static) -> Self {
        Self(Some(Arc::new(encrypt)))
    }

    /// Returns what encrypts, unless it is switched off.
    pub(crate) fn get(&self) -> Option<&Arc<dyn Encrypt>> {
        self.0.as_ref().filter(|encrypt| encrypt.offers().encrypt())
    }

    /// Returns what is offered to peers.
    pub(crate) fn offers(&self) -> Extensions {
        self.0.as_ref().map_or(Extensions::NONE, |encrypt| encrypt.offers())
    }

    /// Whether connections that are not encrypted are refused.
    pub(crate) fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|encrypt| encrypt.is_required())
    }

    fn place(&self) -> usize {
        self.0.as_ref().map_or(0, |encrypt| Arc::as_ptr(encrypt).cast::<()>() as usize)
    }
}

impl<E: Encrypt + 'static> From<E> for Encryption {
    fn from(encrypt: E) -> Self {
        Self::by(encrypt)
    }
}

impl PartialEq for Encryption {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Encryption {}

impl Hash for Encryption {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}
