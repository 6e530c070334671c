//! Endpoints with different policies.

use doorbell_messages::frames::{Endpoint, Match};

use crate::frames::common::{body, emp, received, rmpp, sent};
use crate::frames::everywhere::run;

#[test]
fn endpoints_with_different_policies_understand_each_other() {
    run(async {
        let near = Endpoint::open("udp:127.0.0.1:0").await; // with EMP
        let near = near.expect("it opens");
        let far = Endpoint::builder().policy(rmpp()).open("udp:127.0.0.1:0").await;
        let far = far.expect("it opens");
        let peer = near.connect(far.name()).await.expect("there is a way");
        for policy in [emp(), rmpp()] {
            near.set_policy(policy);
            let receiving = far.receive_at_most(1 << 20, Match::any());
            sent(peer.send(7, body(7, 100_000))).await;
            let message = received(receiving).await;
            assert!(message.body == body(7, 100_000));
            let back = near.receive_at_most(1 << 20, Match::any());
            sent(message.from.send(8, message.body.clone())).await;
            assert!(received(back).await.body == message.body);
        }
    });
}
