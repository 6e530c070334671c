//! The methods of the service, and their handlers.

use std::sync::Arc;

use doorbell::rpc::{Method, Router, Status, Streaming};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::store::{Full, Store};

/// The value of a key; `NotFound` if there is none.
pub const GET: Method<String, String> = Method::new("kv.Store/get").idempotent();
/// Stores a value under a key. A put that is repeated could undo what somebody else has put
/// meanwhile, so the method is not idempotent.
pub const PUT: Method<(String, String), ()> = Method::new("kv.Store/put");
/// Removes a key. The answer says whether the key was there.
pub const DELETE: Method<String, bool> = Method::new("kv.Store/delete");
/// All keys with a prefix and their values, in order. What changes meanwhile may or may not be
/// seen.
pub const SCAN: Method<String, (String, String)> = Method::new("kv.Store/scan").idempotent();
/// Each change of a key with a prefix, from now on.
pub const WATCH: Method<String, Change> = Method::new("kv.Store/watch").idempotent();

/// A change of a key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Change {
    pub key: String,
    /// The new value; `None` if the key was removed.
    pub value: Option<String>,
}

/// The service, with a store of its own.
pub fn router() -> Router {
    let store = Arc::new(Store::new());
    let [gets, puts, deletes, scans, watches] = [(); 5].map(|()| store.clone());
    Router::new()
        .unary(GET, move |request| {
            let value = gets.get(request.get_ref());
            let key = request.into_inner();
            async move { value.ok_or_else(|| Status::not_found(format!("there is no `{key}`"))) }
        })
        .unary(PUT, move |request| {
            let (key, value) = request.into_inner();
            let put = puts.put(key, value);
            async { put.map_err(|Full| Status::resource_exhausted("the store is full")) }
        })
        .unary(DELETE, move |request| {
            let was_there = deletes.delete(request.into_inner());
            async move { Ok(was_there) }
        })
        .server_streaming(SCAN, move |request| {
            let entries = scan(scans.clone(), request.into_inner());
            async { Ok(entries) }
        })
        .server_streaming(WATCH, move |request| {
            let changes = watch(&watches, request.into_inner());
            async { Ok(changes) }
        })
        // They take a microsecond and never wait: no task is started for them.
        .inline(GET)
        .inline(PUT)
        .inline(DELETE)
}

/// The entries with a prefix, which are looked up one by one as the client reads.
fn scan(store: Arc<Store>, prefix: String) -> Streaming<(String, String)> {
    let entries = stream::unfold(None, move |last: Option<String>| {
        let entry = store.next(&prefix, last.as_deref());
        async { entry.map(|(key, value)| (Ok((key.clone(), value)), Some(key))) }
    });
    Streaming::new(entries)
}

/// The changes of keys with a prefix. A client that reads too slowly to be told all of them is told
/// that.
fn watch(store: &Store, prefix: String) -> Streaming<Change> {
    let changes = stream::unfold((store.changes(), prefix), |(mut changes, prefix)| async move {
        let next = loop {
            match changes.recv().await {
                Ok(change) if !change.key.starts_with(&prefix) => {}
                Ok(change) => break Ok(change),
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(missed)) => {
                    break Err(Status::data_loss(format!(
                        "{missed} changes were missed: scan again"
                    )));
                }
            }
        };
        Some((next, (changes, prefix)))
    });
    Streaming::new(changes)
}
