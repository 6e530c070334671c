//! [`Health`], by which a program sets the health of its server, and the methods that answer
//! clients from it.

use std::sync::Arc;

use futures_util::stream;
use tokio::sync::watch;

use super::protocol::{CHECK, LONGEST_NAME, ServingStatus, WATCH};
use super::table::Table;
use crate::message::Streaming;
use crate::router::Router;
use crate::status::Status;

/// The health of a server and of its services, which clients check and watch. A handle by which the
/// program sets statuses.
///
/// The program chooses the names of services. The empty name stands for the server as a whole,
/// which is [`Serving`](ServingStatus::Serving) unless set. Clones are handles to the same health.
/// A `Health` belongs to one server, which sets everything to
/// [`NotServing`](ServingStatus::NotServing) when it [shuts down](crate::Server::close).
///
/// ```
/// use doorbell_rpc::{Channel, Health, HealthClient, Server, ServingStatus};
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
    /// Makes the health of a server that is [`Serving`](ServingStatus::Serving) as a whole.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Table::new())))
    }

    /// Sets the status of a service, or of the whole server with the empty name. Clients that watch
    /// the service are told. [`ServiceUnknown`](ServingStatus::ServiceUnknown) removes the service.
    /// After [`shut_down`](Self::shut_down) statuses can't be changed any more.
    pub fn set(&self, service: &str, status: ServingStatus) {
        self.0.send_if_modified(|table| table.set(service, status));
    }

    /// Removes a service from the health. Checks of it fail with
    /// [`NotFound`](crate::Code::NotFound), and clients that watch it are told
    /// [`ServiceUnknown`](ServingStatus::ServiceUnknown).
    pub fn remove(&self, service: &str) {
        self.set(service, ServingStatus::ServiceUnknown);
    }

    /// The present status of a service.
    #[must_use]
    pub fn get(&self, service: &str) -> ServingStatus {
        self.0.borrow().get(service)
    }

    /// Sets every service to [`NotServing`](ServingStatus::NotServing) for good. Clients that watch
    /// a service are told, and their watches end. A server calls this when it shuts down.
    pub fn shut_down(&self) {
        self.0.send_if_modified(Table::shut_down);
    }

    /// The router with the methods by which clients check and watch.
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

    /// The stream of a service's statuses: the present one, and then each change.
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

/// A client's watch of one service.
struct Watch {
    service: String,
    table: watch::Receiver<Table>,
    /// The status that the client was told last.
    told: Option<ServingStatus>,
}

impl Watch {
    /// Waits for a status that differs from the one that the client was told last. Returns `None`
    /// when statuses can't change any more.
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
