//! The keys of what is received: the present one, the one before, for what was late, and the next
//! one, which the peer may have begun to use.

use std::sync::Arc;

use super::algorithm::Cipher;
use super::numbers::Number;
use super::replay::ReplayWindow;

/// A key, and what has come with it.
struct Received {
    cipher: Arc<dyn Cipher>,
    window: ReplayWindow,
}

impl Received {
    fn new(cipher: Arc<dyn Cipher>) -> Self {
        Self { cipher, window: ReplayWindow::new() }
    }
}

/// The keys of what is received.
pub(super) struct Receiving {
    /// Which key the present one is.
    key: u16,
    present: Received,
    before: Option<Received>,
    next: Arc<dyn Cipher>,
}

impl Receiving {
    pub fn new(cipher: Arc<dyn Cipher>) -> Self {
        let next = cipher.next();
        Self { key: 0, present: Received::new(cipher), before: None, next }
    }

    /// Decrypts a packet into `bytes`. Returns whether it is authentic, and has not come before.
    pub fn open(
        &mut self,
        number: Number,
        clear: &[u8],
        sealed: &[u8],
        bytes: &mut [u8],
    ) -> Result<(), Refused> {
        let ahead = number.key().wrapping_sub(self.key);
        let known = match ahead {
            0 => &mut self.present,
            u16::MAX => self.before.as_mut().ok_or(Refused::NotAuthentic)?,
            1 => return self.open_with_next(number, clear, sealed, bytes),
            _ => return Err(Refused::NotAuthentic),
        };
        if !known.window.is_new(number.count()) {
            return Err(Refused::CameBefore);
        }
        if !known.cipher.open(number.get(), clear, sealed, bytes) {
            return Err(Refused::NotAuthentic);
        }
        known.window.take(number.count());
        Ok(())
    }

    /// Decrypts the first packet that is sealed with the next key, which is the present one then.
    #[cold]
    fn open_with_next(
        &mut self,
        number: Number,
        clear: &[u8],
        sealed: &[u8],
        bytes: &mut [u8],
    ) -> Result<(), Refused> {
        if !self.next.open(number.get(), clear, sealed, bytes) {
            return Err(Refused::NotAuthentic);
        }
        let following = self.next.next();
        let next = Received::new(std::mem::replace(&mut self.next, following));
        self.before = Some(std::mem::replace(&mut self.present, next));
        self.key = self.key.wrapping_add(1);
        self.present.window.take(number.count());
        Ok(())
    }
}

/// Why an encrypted packet was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// It is not what the peer sealed: it was forged, changed, or belongs elsewhere.
    NotAuthentic,
    /// It, or what is too old to be told from it, has come before.
    CameBefore,
}
