//! Calls of RPC, whose handler runs where the request is received.

use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::ensure;
use doorbell_verbs::Nic;

use super::am::{Bundle, BundleConfig};
use super::rpc::{Channel, Client, Method, Router, Server};
use crate::perf::costs::measured::exchange::{Exchange, until};

/// A word, and the next one as the answer.
const NEXT: Method<u64, u64> = Method::new("costs/next");

/// Calls from a channel of one NIC to a server of another.
pub struct Calls {
    client: Client<Channel>,
    bundles: [Bundle; 2],
    called: u64,
    _server: Server,
}

impl Calls {
    pub async fn new([near, far]: &[Nic; 2]) -> anyhow::Result<Self> {
        let config = BundleConfig::default();
        let bundles = [Bundle::new(near, &config)?, Bundle::new(far, &config)?];
        let next = |request: super::rpc::Request<u64>| ready(Ok(request.into_inner() + 1));
        let router = Router::new().unary(NEXT, next).inline(NEXT);
        let server = Server::builder().add_service(router).on_bundle(&bundles[1]).await?;
        let channel = Channel::builder().on_bundle(&bundles[0]).connect(server.name()).await?;
        let client = Client::new(channel);
        client.unary(NEXT, 0).await?;
        Ok(Self { client, bundles, called: 0, _server: server })
    }
}

impl Exchange for Calls {
    #[inline]
    fn once(&mut self) -> anyhow::Result<()> {
        self.called += 1;
        let mut call = pin!(self.client.unary(NEXT, self.called));
        let mut context = Context::from_waker(Waker::noop());
        let serve = || {
            self.bundles[1].poll(true);
            self.bundles[0].poll(true);
        };
        let answer = until(serve, "an answer", || match call.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })?;
        let answer = answer?.into_inner();
        ensure!(answer == self.called + 1, "the answer to {} is {answer}", self.called);
        Ok(())
    }
}
