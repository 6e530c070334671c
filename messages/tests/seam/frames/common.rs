//! Two endpoints over a device.

use std::future::Future;
use std::time::Duration;

use doorbell_messages::frames::{
    Emp, Endpoint, EndpointBuilder, Message, Offload, Peer, Policy, Receiving, Rmpp, Sending,
};
use tokio::time::timeout;

/// The longest that anything here may take.
pub const LONG: Duration = Duration::from_secs(30);

/// The two interfaces of a lab's cable, both of which this thread's namespace has.
pub const CABLE: [&str; 2] = ["a0", "b0"];

pub async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(LONG, future).await.expect("it ends in time")
}

pub async fn received(receiving: Receiving) -> Message {
    in_time(receiving).await.expect("it is received")
}

pub async fn sent(sending: Sending) {
    in_time(sending).await.expect("it is sent");
}

pub fn emp() -> Policy {
    Emp::default().into()
}

pub fn rmpp() -> Policy {
    Rmpp::default().early(6).into()
}

pub fn receive_offloaded() -> Policy {
    Rmpp::default().offload(Offload::Receive).into()
}

pub fn both_offloaded() -> Policy {
    Rmpp::default().early(6).offload(Offload::Both).into()
}

/// The devices of two endpoints, and their policy.
pub struct Ends {
    pub devices: [&'static str; 2],
    pub policy: Policy,
}

/// Two endpoints, and each as the other sees it.
pub struct Pair {
    pub near: Endpoint,
    pub far: Endpoint,
    /// The far endpoint.
    pub peer: Peer,
    /// The near endpoint.
    pub back: Peer,
}

impl Ends {
    pub async fn pair(&self) -> Pair {
        self.pair_with(|builder| builder).await
    }

    /// Makes two endpoints of a configuration. Where frames can be placed, they will be.
    pub async fn pair_with(&self, configure: impl Fn(EndpointBuilder) -> EndpointBuilder) -> Pair {
        let open =
            |end: usize| configure(Endpoint::builder().policy(self.policy)).open(self.devices[end]);
        let near = open(0).await.expect("the near endpoint opens");
        let far = open(1).await.expect("the far endpoint opens");
        let peer = near.connect(far.name()).await.expect("there is a way");
        let back = far.connect(near.name()).await.expect("there is a way back");
        let is_offloaded = self.policy == receive_offloaded() || self.policy == both_offloaded();
        assert_eq!(in_time(peer.ready()).await, is_offloaded);
        assert_eq!(in_time(back.ready()).await, is_offloaded);
        Pair { near, far, peer, back }
    }
}

/// Bytes that differ from one place and one number to another.
pub fn body(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(31) ^ at >> 8 ^ number) as u8).collect()
}
