//! The public keys that an operator has allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::IdentityError;
use super::files::{self, Others};
use super::public_key::PublicKey;

const WHAT: &str = "list of allowed keys";

/// The most bytes of a file with allowed keys: about a hundred thousand keys.
const MOST: u64 = 16 << 20;

/// A set of public keys that are allowed to connect, each with an optional name.
///
/// A file of allowed keys has a line for each key: 64 hexadecimal digits, then, if wanted, a space
/// and a name. Lines that begin with `#`, and empty ones, are skipped.
///
/// ```text
/// # The storage nodes
/// 8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a store-1
/// ```
#[derive(Clone, Default)]
pub struct Allowed {
    keys: BTreeMap<PublicKey, Option<String>>,
    path: Option<PathBuf>,
}

impl Allowed {
    /// Makes an empty set, which allows no key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a key, by a name or without one.
    pub fn insert(&mut self, key: PublicKey, name: Option<&str>) {
        self.keys.insert(key, name.map(str::to_owned));
    }

    /// Reads a set of allowed keys from a file.
    ///
    /// # Errors
    /// When the file can't be read, when others than its owner may write it, or when a line of it
    /// does not begin with a public key. The error names the line.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let path = path.as_ref();
        let text = files::read_text(WHAT, path, Others::MayRead, MOST)?;
        let mut allowed = Self { keys: BTreeMap::new(), path: Some(path.to_owned()) };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let key = key.parse().map_err(|why: IdentityError| IdentityError::Line {
                path: path.to_owned(),
                line: index + 1,
                why: format!("{why}. A line is a public key, then a name if wanted"),
            })?;
            let name = name.trim();
            allowed.insert(key, Some(name).filter(|name| !name.is_empty()));
        }
        Ok(allowed)
    }

    /// Whether a key is allowed.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Returns the name of an allowed key, or `None` if the key has no name or is not allowed.
    pub fn name(&self, key: &PublicKey) -> Option<&str> {
        self.keys.get(key)?.as_deref()
    }

    /// Returns how many keys are allowed.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is allowed.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns a description of where an operator may add a key.
    pub(crate) fn place(&self) -> String {
        match &self.path {
            Some(path) => format!("{}", path.display()),
            None => "the program's set of allowed keys".to_owned(),
        }
    }
}

impl Extend<PublicKey> for Allowed {
    fn extend<T: IntoIterator<Item = PublicKey>>(&mut self, keys: T) {
        self.keys.extend(keys.into_iter().map(|key| (key, None)));
    }
}

impl FromIterator<PublicKey> for Allowed {
    fn from_iter<T: IntoIterator<Item = PublicKey>>(keys: T) -> Self {
        let mut allowed = Self::new();
        allowed.extend(keys);
        allowed
    }
}

impl fmt::Debug for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allowed").field("keys", &self.keys.len()).field("path", &self.path).finish()
    }
}
