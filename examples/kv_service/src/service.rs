//! The service: a trait, from which its server and its client are made, and the trait's
//! implementation on a store.

use std::sync::Arc;

use doorbell::rpc::{self, Status, Streaming};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::store::{Full, Store};

/// Keys and their values. Methods that are `inline` take a microsecond and never wait: no task is
/// started for them.
#[rpc::service(name = "kv.Store")]
pub trait KeyValue {
    /// The value of a key; `NotFound` if there is none.
    #[rpc(idempotent, inline)]
    async fn get(&self, key: String) -> Result<String, Status>;

    /// Stores a value under a key. A put that is repeated could undo what somebody else has put
    /// meanwhile, so the method is not idempotent.
    #[rpc(inline)]
    async fn put(&self, key: String, value: String) -> Result<(), Status>;

    /// Removes a key. Returns whether the key was there.
    #[rpc(inline)]
    async fn delete(&self, key: String) -> Result<bool, Status>;

    /// All keys with a prefix and their values, in order. What changes meanwhile may or may not be
    /// seen.
    #[rpc(idempotent)]
    async fn scan(&self, prefix: String) -> Result<Streaming<(String, String)>, Status>;

    /// Each change of a key with a prefix, from now on. A client that reads too slowly to be told
    /// all of them is told that.
    #[rpc(idempotent)]
    async fn watch(&self, prefix: String) -> Result<Streaming<Change>, Status>;
}

/// A change of a key.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Change {
    pub key: String,
    /// The new value; `None` if the key was removed.
    pub value: Option<String>,
}

/// The service on a store in memory.
#[derive(Default, Debug)]
pub struct InMemory(Arc<Store>);

impl KeyValue for InMemory {
    async fn get(&self, key: String) -> Result<String, Status> {
        self.0.get(&key).ok_or_else(|| Status::not_found(format!("there is no `{key}`")))
    }

    async fn put(&self, key: String, value: String) -> Result<(), Status> {
        self.0.put(key, value).map_err(|Full| Status::resource_exhausted("the store is full"))
    }

    async fn delete(&self, key: String) -> Result<bool, Status> {
        Ok(self.0.delete(key))
    }

    async fn scan(&self, prefix: String) -> Result<Streaming<(String, String)>, Status> {
        let store = self.0.clone();
        // The entries are looked up one by one as the client reads.
        let entries = stream::unfold(None, move |last: Option<String>| {
            let entry = store.next(&prefix, last.as_deref());
            async { entry.map(|(key, value)| (Ok((key.clone(), value)), Some(key))) }
        });
        Ok(Streaming::new(entries))
    }

    async fn watch(&self, prefix: String) -> Result<Streaming<Change>, Status> {
        let begin = (self.0.changes(), prefix);
        let changes = stream::unfold(begin, |(mut changes, prefix)| async move {
            let next = loop {
                match changes.recv().await {
                    Ok(change) if !change.key.starts_with(&prefix) => {}
                    Ok(change) => break Ok(change),
                    Err(RecvError::Closed) => return None,
                    Err(RecvError::Lagged(missed)) => {
                        let text = format!("{missed} changes were missed: scan again");
                        break Err(Status::data_loss(text));
                    }
                }
            };
            Some((next, (changes, prefix)))
        });
        Ok(Streaming::new(changes))
    }
}
