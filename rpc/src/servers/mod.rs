//! Discovery: the servers of a service as they come and go, for balancers.
//!
//! | file | what it does |
//! |---|---|
//! | `watch` | looks again and again, and makes channels for the servers that have come |
//! | `file`, `names` | look into a file, and ask for the addresses of a host |
//! | `source` | the function that looks for servers, and what a look finds |

mod file;
mod names;
mod source;
mod watch;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use doorbell_am::Name;
use futures_core::Stream;
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tower::discover::Change;

use crate::client::{Channel, ChannelBuilder, WhenReady};
use crate::status::{Status, chain};
use source::{LookUp, Source};

/// The servers of a service, as a stream of those that come and go: a `Discover` for tower's
/// balancers. Each server is a [`WhenReady`] by the server's name.
///
/// A task looks for the servers again and again until this is dropped. Calls under way to a server
/// that has gone from the list run to their ends.
///
/// ```
/// use doorbell_rpc::{Channel, Client, Method, Retries, Router, Server, Servers};
/// use tower::ServiceBuilder;
/// use tower::balance::p2c::Balance;
/// use tower::buffer::Buffer;
/// use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
///
/// const DOUBLE: Method<u64, u64> = Method::new("double").idempotent();
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// # let router = || Router::new().unary(DOUBLE, |request| async move { Ok(2 * request.into_inner()) });
/// # let one = Server::builder().add_service(router()).open("shm").await?;
/// # let other = Server::builder().add_service(router()).open("shm").await?;
/// let servers = Servers::list([one.name().clone(), other.name().clone()]).watch()?;
/// let servers = PendingRequestsDiscover::new(servers, CompleteOnResponse::default());
/// let balance = Buffer::new(Balance::new(servers), 64);
/// let client = Client::new(ServiceBuilder::new().retry(Retries::new()).service(balance));
/// assert_eq!(client.unary(DOUBLE, 4).await?.into_inner(), 8);
/// # Ok(())
/// # }
/// ```
pub struct Servers {
    changes: mpsc::Receiver<Change<Name, WhenReady>>,
    task: AbortHandle,
}

/// Configures where servers are looked for, how often, and how channels to them are made.
#[must_use = "servers are looked for when they are watched"]
pub struct ServersBuilder {
    source: Source,
    every: Duration,
    channels: ChannelBuilder,
}

/// Changes that wait to be taken by a balancer. The task looks no further meanwhile.
const WAITING: usize = 64;

/// How long a server of several may be silent to attempts to connect before it counts as gone.
const SILENCE: Duration = Duration::from_secs(1);

impl Servers {
    /// The servers of a list, which stays as it is.
    pub fn list(names: impl IntoIterator<Item = Name>) -> ServersBuilder {
        let names: Vec<_> = names.into_iter().collect();
        Self::found_by(Duration::from_secs(3600), move || std::future::ready(Ok(names.clone())))
    }

    /// The servers whose names are the lines of a file, which is read every second unless
    /// [configured](ServersBuilder::every). Empty lines count for nothing, nor does what follows a
    /// `#` at the beginning of a line or behind a space.
    ///
    /// A file that can't be read, that has no servers, or in which a line is no name leaves the
    /// servers as they were, and is warned of. Replace the file by renaming another, so that no
    /// half of it is read.
    pub fn file(path: impl Into<PathBuf>) -> ServersBuilder {
        let path = path.into();
        Self::found_by(Duration::from_secs(1), move || file::names(path.clone()))
    }

    /// The servers at the addresses that the system finds for a host, such as `kv.internal:5000`,
    /// which is looked up every ten seconds unless [configured](ServersBuilder::every). The servers
    /// have the number `service`, and are reached over `udp`.
    ///
    /// A look-up that fails or finds no address leaves the servers as they were, and is warned of.
    pub fn dns(host: impl Into<String>, service: u64) -> ServersBuilder {
        let host = host.into();
        Self::resolved(service, move || names::look_up(host.clone()))
    }

    /// As [`dns`](Self::dns), with addresses that another resolver finds.
    pub fn resolved<F>(
        service: u64,
        mut resolver: impl FnMut() -> F + Send + 'static,
    ) -> ServersBuilder
    where
        F: Future<Output = std::io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        Self::found_by(Duration::from_secs(10), move || names::of(service, resolver()))
    }

    /// The servers that a function finds, which is called every five seconds unless
    /// [configured](ServersBuilder::every). An error leaves the servers as they were, and is warned
    /// of.
    pub fn from_fn<F, E>(mut look: impl FnMut() -> F + Send + 'static) -> ServersBuilder
    where
        F: Future<Output = Result<Vec<Name>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::found_by(Duration::from_secs(5), move || {
            look().map(|found| found.map_err(Into::into))
        })
    }

    fn found_by<F>(every: Duration, mut look: impl FnMut() -> F + Send + 'static) -> ServersBuilder
    where
        F: Future<Output = LookUp> + Send + 'static,
    {
        let source = Box::new(move || look().boxed());
        ServersBuilder { source, every, channels: Channel::builder().connect_timeout(SILENCE) }
    }
}

impl ServersBuilder {
    /// Sets the time between two looks for the servers.
    pub fn every(self, time: Duration) -> Self {
        Self { every: time, ..self }
    }

    /// Sets the builder of the channels to the servers. Unless set, a server counts as gone when it
    /// has been silent to attempts to connect for a second: others are there to take its calls.
    pub fn channels(self, channels: ChannelBuilder) -> Self {
        Self { channels, ..self }
    }

    /// Begins to look for the servers. As long as none are found, a balancer waits, and log lines
    /// tell why: [`find`](Self::find) is for programs that would rather not start.
    ///
    /// # Errors
    /// When this is called outside of a Tokio runtime.
    pub fn watch(self) -> Result<Servers, Status> {
        self.watch_from(None)
    }

    /// Looks for the servers once, and goes on as [`watch`](Self::watch) does.
    ///
    /// # Errors
    /// [`Unavailable`](crate::Code::Unavailable), with the reason, when that look has found no
    /// servers, or this is called outside of a Tokio runtime.
    pub async fn find(mut self) -> Result<Servers, Status> {
        let found = (self.source)().await;
        match &found {
            Ok(names) if names.is_empty() => {
                Err(Status::unavailable("no servers found: the list of them is empty"))
            }
            Err(why) => Err(Status::unavailable(format!("no servers found: {}", chain(&**why)))),
            Ok(_) => self.watch_from(Some(found)),
        }
    }

    fn watch_from(self, first: Option<LookUp>) -> Result<Servers, Status> {
        let runtime = Handle::try_current().map_err(|_| {
            Status::unavailable(
                "there is no Tokio runtime here, and servers are looked for by a task: watch them in \
                 async code that a runtime runs",
            )
        })?;
        let (tells, changes) = mpsc::channel(WAITING);
        let task = runtime
            .spawn(watch::watch((self.source, self.every), self.channels, first, tells))
            .abort_handle();
        Ok(Servers { changes, task })
    }
}

impl Stream for Servers {
    type Item = Result<Change<Name, WhenReady>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.changes.poll_recv(context).map(|change| change.map(Ok))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServersBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServersBuilder").field("every", &self.every).finish_non_exhaustive()
    }
}
