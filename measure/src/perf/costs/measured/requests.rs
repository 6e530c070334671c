//! Requests of Active Messages, each answered by a reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_verbs::Nic;

use super::am::{Bundle, BundleConfig, Endpoint, Handlers, Peer, ReplyId, RequestId, Tag};
use crate::perf::costs::measured::exchange::Exchange;
use crate::perf::shared::patience::Patience;

const PING: RequestId<(u64, u64)> = RequestId::new(0, "ping");
const PONG: ReplyId<(u64, u64)> = ReplyId::new(0, "pong");

/// Requests of two words from an endpoint of one NIC to one of another.
pub struct Requests {
    peer: Peer,
    bundles: [Bundle; 2],
    sent: u64,
    replies: Arc<AtomicU64>,
    _endpoints: [Endpoint; 2],
}

impl Requests {
    pub async fn new([near, far]: &[Nic; 2]) -> anyhow::Result<Self> {
        let config = BundleConfig::default();
        let bundles = [Bundle::new(near, &config)?, Bundle::new(far, &config)?];
        let replies = Arc::new(AtomicU64::new(0));
        let counts = replies.clone();
        let replied = Handlers::new().reply(PONG, move |_, _| {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let asked = Handlers::new().request(PING, |request, words| request.reply(PONG, words));
        let here = Endpoint::on_bundle(&bundles[0], replied).await?;
        let there = Endpoint::on_bundle(&bundles[1], asked).await?;
        let peer = here.map(0, there.name(), Tag(1)).await?;
        Ok(Self { peer, bundles, sent: 0, replies, _endpoints: [here, there] })
    }

    /// Serves both ends of the exchange once.
    #[inline]
    fn serve(&self) {
        self.bundles[1].poll(true);
        self.bundles[0].poll(true);
    }
}

impl Exchange for Requests {
    #[inline]
    fn once(&mut self) -> anyhow::Result<()> {
        let mut patience = Patience::default();
        let credit = loop {
            match self.peer.try_credit()? {
                Some(credit) => break credit,
                None => self.serve(),
            }
            patience.spend("a credit")?;
        };
        credit.request(PING, (1, self.sent))?;
        self.sent += 1;
        loop {
            self.serve();
            if self.replies.load(Ordering::Relaxed) == self.sent {
                return Ok(());
            }
            patience.spend("a reply")?;
        }
    }
}
