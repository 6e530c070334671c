//! Keys and values in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::service::Change;

/// The most bytes of keys and values that are stored.
const MOST: usize = 1 << 30;

/// How many changes a watcher may be behind. With the longest request that a server takes, a
/// mebibyte, this bounds what is kept of them.
const CHANGES: usize = 1024;

/// A store in memory, and who watches it.
#[derive(Debug)]
pub struct Store {
    table: Mutex<Table>,
    changes: broadcast::Sender<Change>,
}

#[derive(Default, Debug)]
struct Table {
    entries: BTreeMap<String, String>,
    bytes: usize,
}

/// The store has no room for a value.
#[derive(Debug)]
pub struct Full;

impl Default for Store {
    fn default() -> Self {
        Self { table: Mutex::default(), changes: broadcast::Sender::new(CHANGES) }
    }
}

impl Store {
    pub fn get(&self, key: &str) -> Option<String> {
        self.table().entries.get(key).cloned()
    }

    /// Stores a value under a key.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn put(&self, key: String, value: String) -> Result<(), Full> {
        let mut table = self.table();
        let before = table.entries.get(&key).map_or(0, |before| key.len() + before.len());
        let bytes = table.bytes - before + key.len() + value.len();
        if bytes > MOST {
            return Err(Full);
        }
        table.bytes = bytes;
        self.tell(&key, Some(&value));
        table.entries.insert(key, value);
        Ok(())
    }

    /// Removes a key. Returns whether the key was there.
    pub fn delete(&self, key: String) -> bool {
        let mut table = self.table();
        let Some(value) = table.entries.remove(&key) else { return false };
        table.bytes -= key.len() + value.len();
        self.tell(&key, None);
        true
    }

    /// The first entry with a prefix behind a key.
    pub fn next(&self, prefix: &str, behind: Option<&str>) -> Option<(String, String)> {
        let begin = behind.map_or(Bound::Included(prefix), Bound::Excluded);
        let table = self.table();
        let (key, value) = table.entries.range::<str, _>((begin, Bound::Unbounded)).next()?;
        key.starts_with(prefix).then(|| (key.clone(), value.clone()))
    }

    /// The changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Tells those who watch of a change, in the order of the changes: the table is locked.
    fn tell(&self, key: &str, value: Option<&String>) {
        if self.changes.receiver_count() > 0 {
            let change = Change { key: key.to_owned(), value: value.cloned() };
            // Whoever has ended the watch meanwhile need not be told.
            let _ = self.changes.send(change);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
