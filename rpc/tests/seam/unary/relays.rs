//! Handlers that run where their requests were received, and make calls themselves.

use doorbell_am::{Bundle, BundleConfig};
use doorbell_rpc::{Channel, Client, Method, Router, Server};
use doorbell_verbs::Nic;

use crate::unary::{Device, in_time, over_each_device};

over_each_device! {
    calls_that_an_inline_handler_makes_keep_their_connection,
}

const TWICE: Method<u64, u64> = Method::new("twice");
const RELAY: Method<u64, u64> = Method::new("relay");

async fn calls_that_an_inline_handler_makes_keep_their_connection(device: Device) {
    let nic = Nic::open(device.any()).await.expect("the device opens");
    let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("there is room");
    let twice = Router::new().unary(TWICE, async |request| Ok(2 * request.into_inner()));
    let far = Server::builder().add_service(twice).on_bundle(&bundle).await.expect("it opens");
    let to_far = Client::new(Channel::connect(far.name()).await.expect("it is there"));
    let relay = Router::new().unary(RELAY, move |request| {
        let to_far = to_far.clone();
        async move { to_far.unary(TWICE, request.into_inner()).await }
    });
    let near = Server::builder().add_service(relay.inline(RELAY)).open(device.any()).await;
    let near = near.expect("it opens");
    let client = Client::new(Channel::connect(near.name()).await.expect("it is there"));
    let before = bundle.statistics().requests;
    for number in 0..20 {
        let answer = in_time(client.unary(RELAY, number)).await.expect("it is relayed");
        assert_eq!(answer.into_inner(), 2 * number);
    }
    // A client that lost its connection would say hello before each call.
    assert_eq!(bundle.statistics().requests - before, 20);
}
