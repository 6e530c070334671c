//! The table of statuses behind a [`Health`](super::Health).

use std::collections::HashMap;

use super::protocol::ServingStatus;

/// The status of each service that has one.
#[derive(Debug)]
pub struct Table {
    by_service: HashMap<String, ServingStatus>,
    is_shut_down: bool,
}

impl Table {
    /// Makes the table of a server that serves as a whole, and has no status for single services.
    pub fn new() -> Self {
        let by_service = HashMap::from([(String::new(), ServingStatus::Serving)]);
        Self { by_service, is_shut_down: false }
    }

    pub fn get(&self, service: &str) -> ServingStatus {
        self.by_service.get(service).copied().unwrap_or(ServingStatus::ServiceUnknown)
    }

    /// Sets the status of a service, unless the table is shut down. Returns whether the status has
    /// changed.
    pub fn set(&mut self, service: &str, status: ServingStatus) -> bool {
        if self.is_shut_down || self.get(service) == status {
            return false;
        }
        match status {
            ServingStatus::ServiceUnknown => self.by_service.remove(service),
            _ => self.by_service.insert(service.to_owned(), status),
        };
        true
    }

    /// Sets every service to [`ServingStatus::NotServing`] for good. Returns whether the table was
    /// not shut down before.
    pub fn shut_down(&mut self) -> bool {
        self.by_service.values_mut().for_each(|status| *status = ServingStatus::NotServing);
        !std::mem::replace(&mut self.is_shut_down, true)
    }

    /// Whether statuses can't change any more.
    pub fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }
}
