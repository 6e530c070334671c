//! Health: what a server says of itself to load balancers and supervisors, as gRPC's health
//! checking has it.

mod client;
mod table;

use std::sync::Arc;

use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub use client::HealthClient;

use self::table::Table;
use crate::message::Streaming;
use crate::method::Method;
use crate::server::Router;
use crate::status::Status;

const CHECK: Method<String, ServingStatus> = Method::new("doorbell.health/check").idempotent();
const WATCH: Method<String, ServingStatus> = Method::new("doorbell.health/watch").idempotent();

/// The longest name that a client may ask for, in bytes. A watch keeps its name for as long as it
/// lasts.
const LONGEST_NAME: usize = 256;

/// Whether a service takes calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Debug)]
pub enum ServingStatus {
    /// The service takes calls.
    Serving,
    /// The service takes no calls now: it starts, ends, or lacks something that it needs.
    NotServing,
    /// The server says nothing about a service of this name. A watch reports this; a check fails
    /// with [`NotFound`](crate::Code::NotFound) instead.
    ServiceUnknown,
}

/// The health of a server and of its services, which clients check and watch: a handle by which the
/// program sets it.
///
/// Services are told apart by names that the program chooses. The empty name stands for the server
/// as a whole, which is [`Serving`](ServingStatus::Serving) unless set. Clones are handles to the
/// same health. A `Health` is for one server, which sets everything to
/// [`NotServing`](ServingStatus::NotServing) when it [shuts down](crate::Server::shutdown).
///
/// ```
/// use doorbell::rpc::{Channel, Health, HealthClient, Server, ServingStatus};
///
/// #[tokio::main]
/// async fn main() -> anyhow::Result<()> {
///     let health = Health::new();
///     let server = Server::builder().health(&health).open("shm").await?;
///     health.set("index", ServingStatus::NotServing); // it is still being read
///
///     let client = HealthClient::new(Channel::connect(server.name()).await?);
///     assert_eq!(client.check("").await?, ServingStatus::Serving);
///     assert_eq!(client.check("index").await?, ServingStatus::NotServing);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Health(Arc<watch::Sender<Table>>);

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// The health of a server that is [`Serving`](ServingStatus::Serving) as a whole.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Table::new())))
    }

    /// Sets the status of a service, or with the empty name that of the whole server. Whoever
    /// watches the service is told. [`ServiceUnknown`](ServingStatus::ServiceUnknown) removes the
    /// service. After [`shut_down`](Self::shut_down) nothing changes any more.
    pub fn set(&self, service: &str, status: ServingStatus) {
        self.0.send_if_modified(|table| table.set(service, status));
    }

    /// Removes a service: checks of it fail with [`NotFound`](crate::Code::NotFound), and whoever
    /// watches it is told [`ServiceUnknown`](ServingStatus::ServiceUnknown).
    pub fn remove(&self, service: &str) {
        self.set(service, ServingStatus::ServiceUnknown);
    }

    /// The status of a service.
    #[must_use]
    pub fn get(&self, service: &str) -> ServingStatus {
        self.0.borrow().get(service)
    }

    /// Sets every service to [`NotServing`](ServingStatus::NotServing) for good. Whoever watches
    /// one is told, and the watch ends. A server with this health does so when it shuts down.
    pub fn shut_down(&self) {
        self.0.send_if_modified(Table::shut_down);
    }

    /// The methods by which clients check and watch.
    pub(crate) fn router(&self) -> Router {
        let (checked, watched) = (self.clone(), self.clone());
        Router::new()
            .unary(CHECK, move |request| {
                let status = checked.check(request.get_ref());
                async { status }
            })
            .server_streaming(WATCH, move |request| {
                let statuses = watched.watch(request.into_inner());
                async { statuses }
            })
            .inline(CHECK)
    }

    fn check(&self, service: &str) -> Result<ServingStatus, Status> {
        match self.get(service) {
            ServingStatus::ServiceUnknown => Err(Status::not_found(format!(
                "the server says nothing about the health of a service `{}`",
                &service[..service.floor_char_boundary(LONGEST_NAME)]
            ))),
            status => Ok(status),
        }
    }

    /// The present status of a service, and then each change.
    fn watch(&self, service: String) -> Result<Streaming<ServingStatus>, Status> {
        if service.len() > LONGEST_NAME {
            return Err(Status::invalid_argument(format!(
                "the name of a service has {} bytes, and at most {LONGEST_NAME} can be watched",
                service.len()
            )));
        }
        let watch = Watch { service, table: self.0.subscribe(), told: None };
        Ok(Streaming::new(stream::unfold(watch, |mut watch| async move {
            let status = watch.next().await?;
            Some((Ok(status), watch))
        })))
    }
}

/// A client's watch of a service.
struct Watch {
    service: String,
    table: watch::Receiver<Table>,
    /// What the client was told last.
    told: Option<ServingStatus>,
}

impl Watch {
    /// The next status that differs from what the client was told; `None` when there will be no
    /// other.
    async fn next(&mut self) -> Option<ServingStatus> {
        loop {
            let (status, is_last) = {
                let table = self.table.borrow_and_update();
                (table.get(&self.service), table.is_shut_down())
            };
            if self.told != Some(status) {
                self.told = Some(status);
                return Some(status);
            }
            if is_last {
                return None;
            }
            self.table.changed().await.ok()?;
        }
    }
}
