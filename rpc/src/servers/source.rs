//! The function that looks for the servers of a service, and what a look finds.

use std::error::Error;

use doorbell_am::Name;
use futures_util::future::BoxFuture;

/// What a look for the servers finds: the names of all, or an error, which leaves the servers that
/// are known.
pub type LookUp = Result<Vec<Name>, Box<dyn Error + Send + Sync>>;

/// A function that looks for the servers.
pub type Source = Box<dyn FnMut() -> BoxFuture<'static, LookUp> + Send>;
