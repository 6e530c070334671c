//! Meters of calls. The handles to a method's meters are made when the method is first called, and
//! then kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::{Arc, LazyLock, Once, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use doorbell_verbs::Nic;
use metrics::{Counter, Gauge, Histogram};

use super::names;
use crate::method::MethodId;
use crate::status::Code;

/// The meters of a method at a client or at a server. Clones are handles to the same meters.
#[derive(Clone)]
pub struct Meters(Arc<Kept>);

struct Kept {
    side: &'static Side,
    method: &'static str,
    handles: OnceLock<Handles>,
}

/// The names of the metrics of clients, or of servers.
struct Side {
    calls: &'static str,
    seconds: &'static str,
    in_flight: &'static str,
}

static CLIENT: Side = Side {
    calls: names::CLIENT_CALLS,
    seconds: names::CLIENT_SECONDS,
    in_flight: names::CLIENT_IN_FLIGHT,
};

static SERVER: Side = Side {
    calls: names::SERVER_CALLS,
    seconds: names::SERVER_SECONDS,
    in_flight: names::SERVER_IN_FLIGHT,
};

struct Handles {
    /// The counters of ended calls, by the code that they have ended with.
    by_code: [OnceLock<Counter>; Code::COUNT],
    seconds: Histogram,
    in_flight: Gauge,
}

/// The meters of all methods that this program calls, by the numbers of the methods' paths. There
/// are no more than the program has methods.
static OF_CLIENTS: LazyLock<RwLock<HashMap<u64, Meters>>> = LazyLock::new(RwLock::default);

thread_local! {
    /// The meters that this thread has used last, by the number of their method.
    static LAST_OF_CLIENT: RefCell<Option<(u64, Meters)>> = const { RefCell::new(None) };
}

impl Meters {
    /// Whether meters count anything: they do with the feature `metrics`.
    pub const ARE_KEPT: bool = true;

    /// The meters of a method that this program calls. Each thread knows those that it used last.
    pub fn of_client(method: MethodId) -> Self {
        let number = method.number();
        let used = |last: &RefCell<Option<(u64, Self)>>| match &*last.borrow() {
            Some((of, meters)) if *of == number => Some(meters.clone()),
            _ => None,
        };
        if let Ok(Some(meters)) = LAST_OF_CLIENT.try_with(used) {
            return meters;
        }
        let meters = Self::find_of_client(method);
        let uses = Some((number, meters.clone()));
        let _ = LAST_OF_CLIENT.try_with(|last| drop(last.replace(uses)));
        meters
    }

    fn find_of_client(method: MethodId) -> Self {
        let number = method.number();
        let known = OF_CLIENTS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        known.unwrap_or_else(|| {
            let mut all = OF_CLIENTS.write().unwrap_or_else(PoisonError::into_inner);
            all.entry(number).or_insert_with(|| Self::new(&CLIENT, method)).clone()
        })
    }

    /// New meters of a method that a server has. The server keeps them.
    pub fn of_server(method: MethodId) -> Self {
        Self::new(&SERVER, method)
    }

    fn new(side: &'static Side, method: MethodId) -> Self {
        Self(Arc::new(Kept { side, method: method.path(), handles: OnceLock::new() }))
    }

    /// Counts a call in flight, and begins to time it.
    pub fn begin(self) -> Timed {
        self.0.handles().in_flight.increment(1);
        Timed { meters: self, begun: Instant::now() }
    }
}

impl Kept {
    fn handles(&self) -> &Handles {
        self.handles.get_or_init(|| {
            describe();
            let Self { side, method, .. } = *self;
            Handles {
                by_code: [const { OnceLock::new() }; Code::COUNT],
                seconds: metrics::histogram!(side.seconds, "method" => method),
                in_flight: metrics::gauge!(side.in_flight, "method" => method),
            }
        })
    }

    fn ended(&self, code: Code) -> &Counter {
        let counter = &self.handles().by_code[usize::from(code.number())];
        counter.get_or_init(|| {
            let Self { side, method, .. } = *self;
            metrics::counter!(side.calls, "method" => method, "code" => code.to_string())
        })
    }
}

/// A call that is timed. Its end must be recorded once.
pub struct Timed {
    meters: Meters,
    begun: Instant,
}

impl Timed {
    pub fn end(&mut self, code: Code) {
        let kept = &*self.meters.0;
        let handles = kept.handles();
        handles.in_flight.decrement(1);
        handles.seconds.record(self.begun.elapsed());
        kept.ended(code).increment(1);
    }
}

/// The meter of how many more calls a channel allows. Channels to the same server add up.
pub struct PermitMeter {
    gauge: Gauge,
    most: usize,
}

impl PermitMeter {
    /// Makes the meter of a channel to a server, which allows `most` calls.
    pub fn new(server: &impl Display, most: usize) -> Self {
        describe();
        let gauge = metrics::gauge!(names::CLIENT_PERMITS, "server" => server.to_string());
        gauge.increment(most as f64);
        Self { gauge, most }
    }

    pub fn take(&self) {
        self.gauge.decrement(1);
    }

    pub fn give_back(&self) {
        self.gauge.increment(1);
    }
}

impl Drop for PermitMeter {
    fn drop(&mut self) {
        self.gauge.decrement(self.most as f64);
    }
}

/// Counts a call that a server has refused before its handler ran.
pub fn refused(code: Code) {
    static BY_CODE: [OnceLock<Counter>; Code::COUNT] = [const { OnceLock::new() }; Code::COUNT];
    let counter = BY_CODE[usize::from(code.number())].get_or_init(|| {
        describe();
        metrics::counter!(names::SERVER_REFUSED, "code" => code.to_string())
    });
    counter.increment(1);
}

/// Counts a call that is sent again over another connection.
pub fn resent(method: MethodId) {
    metrics::counter!(names::CLIENT_RESENT, "method" => method.path()).increment(1);
}

/// Counts a connection to a server that was made because the one before had ended.
pub fn reconnected(server: &impl Display) {
    metrics::counter!(names::CLIENT_RECONNECTS, "server" => server.to_string()).increment(1);
}

/// Counts the bytes of a body that was written into the other end's memory.
pub fn body_sent(len: usize) {
    static SENT: OnceLock<Counter> = OnceLock::new();
    count_body(&SENT, "sent", len);
}

/// Counts the bytes of a body that the other end has written into this end's memory.
pub fn body_received(len: usize) {
    static RECEIVED: OnceLock<Counter> = OnceLock::new();
    count_body(&RECEIVED, "received", len);
}

fn count_body(counter: &OnceLock<Counter>, direction: &'static str, len: usize) {
    let new = || metrics::counter!(names::BODY_BYTES, "direction" => direction);
    counter.get_or_init(new).increment(len as u64);
}

/// Publishes the statistics of a NIC, from packets to retransmissions, in the recorder of the crate
/// `metrics` that the program has installed. The label `nic` is the NIC's address. To be called
/// whenever the metrics are about to be read.
///
/// The names are those of
/// [`Statistics::publish`](doorbell_verbs::Statistics::publish); packets that were sent again are
/// `doorbell_nic_retransmitted`.
///
/// ```
/// # async fn page(server: doorbell_rpc::Server) {
/// doorbell_rpc::record_nic(server.nic());
/// # }
/// ```
pub fn record_nic(nic: &Nic) {
    nic.statistics().publish(&nic.address().to_string());
}

fn describe() {
    static DESCRIBED: Once = Once::new();
    DESCRIBED.call_once(names::describe);
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meters").field(&self.0.method).finish()
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed").field("meters", &self.meters).finish_non_exhaustive()
    }
}

impl fmt::Debug for PermitMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitMeter").field("most", &self.most).finish_non_exhaustive()
    }
}
