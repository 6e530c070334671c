//! Trust on first use: the key that each address first had.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::IdentityError;
use super::files::{self, Others};
use super::public_key::PublicKey;

const WHAT: &str = "list of remembered keys";

/// The most bytes of a file with remembered keys.
const MOST_BYTES: u64 = 32 << 20;

/// The most bytes of an address.
const MOST_ADDRESS: usize = 256;

/// The most addresses whose keys are remembered.
const MOST: usize = 65_536;

/// The public key that each address first had. A peer that comes with another key later is refused.
///
/// The first connection with an address is not protected from somebody who answers in its place.
/// All clones have the same memory. An address is a text without white space, such as `10.0.0.7`.
///
/// A file has a line for each address, with the address and the public key. If an address has
/// several lines, the first one counts. The file is read once and appended to later, so that what
/// another process appends in the meantime is seen at the next start.
#[derive(Clone)]
pub struct FirstUse {
    known: Arc<Mutex<BTreeMap<String, PublicKey>>>,
    path: Option<PathBuf>,
}

impl FirstUse {
    /// Makes an empty memory, which ends with the process.
    pub fn in_memory() -> Self {
        Self { known: Arc::default(), path: None }
    }

    /// Makes a memory of what a file has, to which new addresses are appended. A file that does not
    /// exist yet is made with the first address.
    ///
    /// # Errors
    /// When the file can't be read, when others than its owner may write it, or when a line of it
    /// is not an address and a public key. The error names the line.
    pub fn in_file(path: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let path = path.as_ref();
        let known = if path.exists() { read(path)? } else { BTreeMap::new() };
        Ok(Self { known: Arc::new(Mutex::new(known)), path: Some(path.to_owned()) })
    }

    /// Returns the key that an address first had, or `None` if the address is new.
    pub fn key(&self, address: &str) -> Option<PublicKey> {
        self.lock().get(address).copied()
    }

    /// Returns the key of an address, which is `key` from now on if the address is new.
    ///
    /// # Errors
    /// When the text can't be an address, when too many addresses are remembered, or when the file
    /// can't be written. The address stays unknown then.
    pub fn remember(&self, address: &str, key: PublicKey) -> Result<PublicKey, IdentityError> {
        let mut known = self.lock();
        if let Some(&known) = known.get(address) {
            return Ok(known);
        }
        check(address)?;
        if known.len() >= MOST {
            return Err(IdentityError::Full { most: MOST });
        }
        if let Some(path) = &self.path {
            files::append(WHAT, path, &format!("{address} {key}"))?;
        }
        known.insert(address.to_owned(), key);
        Ok(key)
    }

    /// Returns what an operator does to make an address forgotten.
    pub(crate) fn remedy(&self) -> String {
        match &self.path {
            Some(path) => format!("remove its line from {}", path.display()),
            None => "restart this process, which remembers keys in memory".to_owned(),
        }
    }

    /// A thread that panicked while it held the lock left the map whole: each change is one
    /// insertion.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, PublicKey>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that an address is one word of a line.
fn check(address: &str) -> Result<(), IdentityError> {
    let is_word = !address.is_empty()
        && address.len() <= MOST_ADDRESS
        && !address.starts_with('#')
        && !address.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_word {
        return Ok(());
    }
    let address = address.chars().take(MOST_ADDRESS).flat_map(char::escape_debug).collect();
    Err(IdentityError::Address { address, most: MOST_ADDRESS })
}

fn read(path: &Path) -> Result<BTreeMap<String, PublicKey>, IdentityError> {
    let text = files::read_text(WHAT, path, Others::MayRead, MOST_BYTES)?;
    let mut known = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(address) = words.next().filter(|word| !word.starts_with('#')) else { continue };
        let key = match (words.next().map(str::parse::<PublicKey>), words.next()) {
            (Some(Ok(key)), None) => key,
            _ => {
                return Err(IdentityError::Line {
                    path: path.to_owned(),
                    line: index + 1,
                    why: "expected an address and a public key of 64 hexadecimal digits".to_owned(),
                });
            }
        };
        known.entry(address.to_owned()).or_insert(key);
    }
    Ok(known)
}

impl fmt::Debug for FirstUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstUse")
            .field("known", &self.lock().len())
            .field("path", &self.path)
            .finish()
    }
}
