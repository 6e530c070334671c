//! The health of servers, checked and watched over shared memory and sockets.

use std::time::Duration;

use doorbell_rpc::{Channel, Code, Health, HealthClient, Server, ServingStatus, Streaming};

use ServingStatus::{NotServing, ServiceUnknown, Serving};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// A server with a health, and a client that asks for it.
async fn pair(device: &str) -> (Server, Health, HealthClient) {
    let health = Health::new();
    let server = Server::builder().health(&health).open(device).await.expect("the device opens");
    let client = client(&server).await;
    (server, health, client)
}

async fn client(server: &Server) -> HealthClient {
    HealthClient::new(Channel::connect(server.name()).await.expect("the server is there"))
}

/// The next status of a watch that goes on.
async fn next(watch: &mut Streaming<ServingStatus>) -> ServingStatus {
    watch.message().await.expect("the watch goes on").expect("the watch has not ended")
}

async fn a_check_tells_what_was_set_last(device: &str) {
    let (_server, health, client) = pair(device).await;
    for status in [Serving, NotServing, Serving] {
        health.set("index", status);
        assert_eq!(client.check("index").await.expect("the service is known"), status);
        assert_eq!(health.get("index"), status);
    }
}

async fn a_server_is_serving_as_a_whole_unless_set(device: &str) {
    let (_server, health, client) = pair(device).await;
    assert_eq!(client.check("").await.expect("the whole server is known"), Serving);
    health.set("", NotServing);
    assert_eq!(client.check("").await.expect("the whole server is known"), NotServing);
}

async fn a_check_of_an_unknown_or_removed_service_is_not_found(device: &str) {
    let (_server, health, client) = pair(device).await;
    let refused = client.check("index").await.expect_err("the service was never set");
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("`index`"), "{refused}");
    health.set("index", Serving);
    client.check("index").await.expect("the service is set");
    health.remove("index");
    let refused = client.check("index").await.expect_err("the service was removed");
    assert_eq!(refused.code(), Code::NotFound);
}

async fn a_watch_begins_with_the_present_status_and_tells_each_change(device: &str) {
    let (_server, health, client) = pair(device).await;
    health.set("index", NotServing);
    let mut watch = client.watch("index").await.expect("the server takes watches");
    assert_eq!(next(&mut watch).await, NotServing);
    for status in [Serving, NotServing, Serving] {
        // Neither is a change of this service.
        health.set("index", health.get("index"));
        health.set("other", status);
        health.set("index", status);
        assert_eq!(next(&mut watch).await, status);
    }
}

async fn a_watch_of_an_unknown_service_changes_when_the_service_is_set(device: &str) {
    let (_server, health, client) = pair(device).await;
    let mut watch = client.watch("index").await.expect("the server takes watches");
    assert_eq!(next(&mut watch).await, ServiceUnknown);
    health.set("index", Serving);
    assert_eq!(next(&mut watch).await, Serving);
    health.remove("index");
    assert_eq!(next(&mut watch).await, ServiceUnknown);
}

async fn a_server_that_shuts_down_is_not_serving_and_ends_watches(device: &str) {
    let (server, health, client) = pair(device).await;
    health.set("index", Serving);
    let mut watches = Vec::new();
    for service in ["", "index"] {
        let mut watch = client.watch(service).await.expect("the server takes watches");
        assert_eq!(next(&mut watch).await, Serving);
        watches.push(watch);
    }
    server.close().await.expect("clients take their answers");
    for mut watch in watches {
        assert_eq!(next(&mut watch).await, NotServing);
        assert_eq!(watch.message().await.expect("the watch ends well"), None);
    }
    health.set("index", Serving);
    assert_eq!(health.get("index"), NotServing);
}

async fn a_watch_of_a_name_that_is_too_long_is_refused(device: &str) {
    let (_server, _health, client) = pair(device).await;
    client.watch(&"x".repeat(256)).await.expect("the name is not too long");
    let refused = client.watch(&"x".repeat(257)).await.expect_err("the name is too long");
    assert_eq!(refused.code(), Code::InvalidArgument);
}

async fn a_server_without_a_health_does_not_have_the_methods(device: &str) {
    let server = Server::builder().open(device).await.expect("the device opens");
    let refused = client(&server).await.check("").await.expect_err("there is no such method");
    assert_eq!(refused.code(), Code::Unimplemented);
}

on_each_device!(
    a_check_tells_what_was_set_last,
    a_server_is_serving_as_a_whole_unless_set,
    a_check_of_an_unknown_or_removed_service_is_not_found,
    a_watch_begins_with_the_present_status_and_tells_each_change,
    a_watch_of_an_unknown_service_changes_when_the_service_is_set,
    a_server_that_shuts_down_is_not_serving_and_ends_watches,
    a_watch_of_a_name_that_is_too_long_is_refused,
    a_server_without_a_health_does_not_have_the_methods,
);
