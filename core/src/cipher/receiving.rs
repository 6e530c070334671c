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
    /// The number of the present key, modulo 2¹⁶: how many keys there were before it.
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

    /// Decrypts a packet into `bytes`, if it is authentic and has not come before.
    pub fn open(
        &mut self,
        number: Number,
        clear: &[u8],
        sealed: &[u8],
        bytes: &mut [u8],
    ) -> Result<(), Unopened> {
        let known = match number.key().wrapping_sub(self.key) {
            0 => &mut self.present,
            u16::MAX => self.before.as_mut().ok_or(Unopened::NotAuthentic)?,
            1 => {
                if !self.next.open(number.get(), clear, sealed, bytes) {
                    return Err(Unopened::NotAuthentic);
                }
                self.follow();
                self.present.window.take(number.count());
                return Ok(());
            }
            _ => return Err(Unopened::NotAuthentic),
        };
        if !known.window.is_new(number.count()) {
            return Err(Unopened::CameBefore);
        }
        if !known.cipher.open(number.get(), clear, sealed, bytes) {
            return Err(Unopened::NotAuthentic);
        }
        known.window.take(number.count());
        Ok(())
    }

    /// Goes on to the next key, since the peer has begun to use it.
    #[cold]
    fn follow(&mut self) {
        let following = self.next.next();
        let next = Received::new(std::mem::replace(&mut self.next, following));
        self.before = Some(std::mem::replace(&mut self.present, next));
        self.key = self.key.wrapping_add(1);
    }
}

/// Why an encrypted packet could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unopened {
    /// The packet is not what the peer sent: it was forged, changed, moved, or is too short.
    #[error("an encrypted packet that the peer has not sent so: it was forged, changed or moved")]
    NotAuthentic,
    /// The packet has come before, or is too old to be told from one that has.
    #[error("an encrypted packet that has come before, or is too old to tell")]
    CameBefore,
}
