//! Tagged messages, each sent there and back.

use anyhow::ensure;
use doorbell_verbs::Nic;

use super::am::{Bundle, BundleConfig};
use super::messages::{Endpoint, Match, Peer};
use crate::perf::costs::measured::exchange::{Exchange, until};

/// The match bits of a message there.
const THERE: u64 = 1;
/// The match bits of a message back.
const BACK: u64 = 2;
/// The bytes of a message, as many as two words.
const BODY: &[u8] = b"there, and back.";

/// Messages from an endpoint of one NIC to one of another.
pub struct Tagged {
    peer: Peer,
    bundles: [Bundle; 2],
    ends: [Endpoint; 2],
}

impl Tagged {
    pub async fn new([near, far]: &[Nic; 2]) -> anyhow::Result<Self> {
        let config = BundleConfig::default();
        let bundles = [Bundle::new(near, &config)?, Bundle::new(far, &config)?];
        let near = Endpoint::builder().on_bundle(&bundles[0]).await?;
        let far = Endpoint::builder().on_bundle(&bundles[1]).await?;
        let peer = near.connect(far.name()).await?;
        Ok(Self { peer, bundles, ends: [near, far] })
    }
}

impl Exchange for Tagged {
    #[inline]
    fn once(&mut self) -> anyhow::Result<()> {
        let [near, far] = &self.ends;
        let mut there = far.receive(Match::exactly(THERE));
        let mut back = near.receive(Match::exactly(BACK));
        let mut sent = self.peer.send(THERE, BODY);
        let serve = || {
            self.bundles[1].poll(true);
            self.bundles[0].poll(true);
        };
        let came = until(serve, "a message", || there.test())??;
        let mut answered = came.from.send(BACK, came.body);
        let back = until(serve, "a message back", || back.test())??;
        ensure!(back.body == BODY, "a message came back as {:?}", back.body);
        for sending in [&mut sent, &mut answered] {
            until(serve, "the end of a send", || sending.test())??;
        }
        Ok(())
    }
}
