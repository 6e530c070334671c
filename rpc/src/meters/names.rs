//! The names of all metrics, and their descriptions.

use metrics::Unit;

pub const CLIENT_CALLS: &str = "doorbell_rpc_client_calls_total";
pub const CLIENT_SECONDS: &str = "doorbell_rpc_client_call_seconds";
pub const CLIENT_IN_FLIGHT: &str = "doorbell_rpc_client_in_flight";
pub const CLIENT_PERMITS: &str = "doorbell_rpc_client_permits";
pub const CLIENT_RESENT: &str = "doorbell_rpc_client_resent_total";
pub const CLIENT_RECONNECTS: &str = "doorbell_rpc_client_reconnects_total";
pub const SERVER_CALLS: &str = "doorbell_rpc_server_calls_total";
pub const SERVER_SECONDS: &str = "doorbell_rpc_server_call_seconds";
pub const SERVER_IN_FLIGHT: &str = "doorbell_rpc_server_in_flight";
pub const SERVER_REFUSED: &str = "doorbell_rpc_server_refused_total";
pub const BODY_BYTES: &str = "doorbell_rpc_body_bytes_total";

/// Gives the recorder a description of each metric.
pub fn describe() {
    let count = Unit::Count;
    metrics::describe_counter!(CLIENT_CALLS, count, "calls that have ended, by method and code");
    metrics::describe_histogram!(
        CLIENT_SECONDS,
        Unit::Seconds,
        "how long callers have waited for the end of their calls, by method"
    );
    metrics::describe_gauge!(CLIENT_IN_FLIGHT, count, "calls that have not ended, by method");
    metrics::describe_gauge!(CLIENT_PERMITS, count, "calls that channels allow more, by server");
    metrics::describe_counter!(
        CLIENT_RESENT,
        count,
        "calls that were sent again over another connection, by method"
    );
    metrics::describe_counter!(
        CLIENT_RECONNECTS,
        count,
        "connections that were made because the one before had ended, by server"
    );
    metrics::describe_counter!(
        SERVER_CALLS,
        count,
        "calls whose handlers have run, by method and code"
    );
    metrics::describe_histogram!(
        SERVER_SECONDS,
        Unit::Seconds,
        "how long handlers and their streams have run, by method"
    );
    metrics::describe_gauge!(SERVER_IN_FLIGHT, count, "calls whose handlers run, by method");
    metrics::describe_counter!(
        SERVER_REFUSED,
        count,
        "calls that were refused before a handler ran, by code"
    );
    metrics::describe_counter!(
        BODY_BYTES,
        Unit::Bytes,
        "bytes of bodies that went by RDMA, by direction"
    );
}
