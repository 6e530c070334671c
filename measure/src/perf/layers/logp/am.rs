//! Requests of Active Messages, each answered by a reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Handlers, Name, Peer as Other, ReplyId,
    RequestId, Tag,
};
use doorbell_logp::Requester;
use doorbell_verbs::Nic;
use serde_json::json;
use tokio::sync::Notify;

use super::rounds::{LONGEST, WINDOW, Waiting, measure};
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::logp_result::LogpResult;
use crate::perf::layers::am;
use crate::perf::layers::verbs::Guard;

const PING: RequestId<u64> = RequestId::new(0, "ping");
const END: RequestId<()> = RequestId::new(1, "end");
const PONG: ReplyId<u64> = ReplyId::new(0, "pong");
const TAG: Tag = Tag(0x0D00_10B7);

/// The end that asks.
struct Asker {
    peer: Other,
    bundle: Bundle,
    payload: Vec<u8>,
    sent: u64,
    answered: Arc<AtomicU64>,
    waiting: Waiting,
}

impl Requester for Asker {
    type Error = anyhow::Error;

    #[inline]
    fn send(&mut self, bytes: usize) -> anyhow::Result<()> {
        let credit = loop {
            match self.peer.try_credit()? {
                Some(credit) => break credit,
                None => {
                    let before = self.answered.load(Ordering::Relaxed);
                    self.bundle.poll(true);
                    self.waiting.look(self.answered.load(Ordering::Relaxed) != before)?;
                }
            }
        };
        self.sent += 1;
        match bytes {
            0 => credit.request(PING, self.sent)?,
            _ => credit.request_with(PING, self.sent, &self.payload[..bytes])?,
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self) -> anyhow::Result<()> {
        let before = self.answered();
        self.bundle.poll(true);
        self.waiting.look(self.answered() != before)?;
        match self.peer.ending() {
            None => Ok(()),
            Some(ending) => Err(anyhow::anyhow!("the other end: {ending}")),
        }
    }

    #[inline]
    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

pub async fn run(
    nic: &Nic,
    guard: &Guard,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, LogpResult)>> {
    let bundle = Bundle::new(nic, &BundleConfig::default())?;
    let (answered, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let (counted, told) = (answered.clone(), ended.clone());
    let handlers = Handlers::new()
        .request(PING, |request, number| request.reply(PONG, number))
        .request(END, move |_, ()| told.notify_one())
        .reply(PONG, move |_, _| _ = counted.fetch_add(1, Ordering::Relaxed));
    let config = EndpointConfig {
        admits: TAG.into(),
        credits: WINDOW,
        first_credits: WINDOW,
        payload: LONGEST,
        policy: am::policy(plan),
        flow: am::flow(plan),
        ..EndpointConfig::default()
    };
    let endpoint = guard
        .run(async { Ok(Endpoint::builder().config(config).on_bundle(&bundle, handlers).await?) })
        .await?;
    let name = meet(&endpoint, peer, nic)?;
    let beat = guard.beat();
    let found = guard.run(async {
        if !peer.leads() {
            loop {
                tokio::select! {
                    () = ended.notified() => return Ok(None),
                    () = tokio::time::sleep(std::time::Duration::from_millis(100)) => beat.count(),
                }
            }
        }
        let other = endpoint.map(0, &name, TAG).await?;
        let asker = Asker {
            peer: other,
            bundle: bundle.clone(),
            payload: vec![7; LONGEST],
            sent: 0,
            answered,
            waiting: Waiting::default(),
        };
        let (rounds, known, asker) = measure(asker, plan, &beat).await?;
        asker.peer.request(END, ()).await?;
        Ok(Some((rounds, known)))
    });
    let found = found.await?;
    peer.meet(|| {
        bundle.poll(true);
        Ok(())
    })?;
    Ok(found)
}

/// Tells the other end the endpoint's name, and hears the same.
fn meet(endpoint: &Endpoint, peer: &mut Peer, nic: &Nic) -> anyhow::Result<Name> {
    let theirs = peer.swap_while(&json!(endpoint.name().to_string()), || {
        nic.turn();
        Ok(())
    })?;
    Ok(theirs.as_str().context("the other end's name")?.parse()?)
}
