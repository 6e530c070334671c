//! The memory that an idle peer takes.

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Handlers, ReplyId, RequestId, Tag,
};
use doorbell_kit::child;
use doorbell_verbs::{Config, Nic};
use tokio::runtime::Builder;

use crate::HELD;

const ASK: RequestId<u64> = RequestId::new(0, "ask");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");
const PEERS: usize = 1000;

#[test]
fn an_idle_peer_takes_8_and_a_half_kib_at_most_and_little_more_if_it_shows_a_tag() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let plain = bytes_of_a_peer(None).await;
            let tagged = bytes_of_a_peer(Some(Tag(1))).await;
            println!("{plain} bytes for each end, {tagged} with a tag");
            // Tables of the NIC that grow with the number of peers are counted, too.
            assert!(plain <= 17 << 9, "{plain} bytes");
            assert!(tagged <= (17 << 9) + 128, "{tagged} bytes with a tag");
        });
    });
}

/// Maps a thousand peers by a tag, or by none, each of which has answered a call, with both ends in
/// this process. Each peer has one receive, and busy peers share a seventh more.
async fn bytes_of_a_peer(tag: Option<Tag>) -> isize {
    let config = Config { queue_pairs: PEERS + 1, ..Config::default() };
    let name =
        |end: &str| format!("shm:am-footprint-{}/{end}/{}", tag.is_some(), std::process::id());
    let open =
        |end| Nic::builder().config(config.clone()).open_blocking(&name(end)).expect("a name");
    let (near, far) = (open("near"), open("far"));
    let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
    let config = |service| EndpointConfig {
        service,
        receives: PEERS + PEERS / 7,
        ..EndpointConfig::default()
    };
    let handlers = Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
    // Known by a number that others might have, it gets a connection for each time it is mapped.
    let far = Endpoint::builder()
        .config(config(Some(7)))
        .on_bundle(&bundle(&far), handlers)
        .await
        .expect("room");
    let near = Endpoint::builder()
        .config(config(None))
        .on_bundle(&bundle(&near), Handlers::new())
        .await
        .expect("room");
    let mut before = 0;
    for number in 0..PEERS {
        if number == 1 {
            // From the second peer on, memory that all peers share is allocated.
            before = HELD.bytes();
        }
        let peer = near.map(number, far.name(), tag).await.expect("it is there");
        let told = peer.call(ASK, 1).await.expect("it answers");
        assert_eq!(told.arguments(TOLD), Ok(2));
    }
    let ends = 2 * (PEERS - 1) as isize;
    (HELD.bytes() - before) / ends
}
