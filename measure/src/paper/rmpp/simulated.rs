//! Messages over a simulated link with a delay, in virtual time.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_messages::frames::{Endpoint, Match, Rmpp};
use doorbell_simulation::{Bandwidth, Ether, LinkConfig, passing_in_steps};
use doorbell_verbs::{Config, Nic};

/// The length of the message, and how long a simulation may take.
const BYTES: usize = 512 << 10;
const LONG: Duration = Duration::from_secs(10);

/// Returns the bandwidth of a long message in megabytes a second of virtual time, with more
/// requested so many frames early, over a link of 1 Gb/s with a delay in microseconds each way.
pub fn rate(early: u16, delay: u64) -> Option<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime
        .block_on(async { tokio::time::timeout(LONG, simulate(early, delay)).await.ok().flatten() })
}

async fn simulate(early: u16, delay: u64) -> Option<f64> {
    let link = LinkConfig {
        latency: Duration::from_micros(delay),
        bandwidth: Bandwidth::gigabits_per_second(1),
        mtu: 4200,
        ..LinkConfig::default()
    };
    let (ether, _, stations) = Ether::cabled(1, link, Version::V2Ipv4, false);
    let mut ends = Vec::new();
    for (end, station) in (0..).zip(stations) {
        let config = Config { seed: Some(end), spin: Duration::ZERO, ..Config::default() };
        let nic = Nic::builder().config(config).on(ether.station(station).ok()?).ok()?;
        // The endpoints go by the machine's time, which must not matter here.
        let builder = Endpoint::builder().policy(Rmpp::default().early(early)).frame(1388);
        let builder = builder.resend(LONG, LONG).patience(8 * LONG);
        ends.push(builder.on(&nic).await.ok()?);
    }
    let message = async {
        let peer = ends[0].connect(ends[1].name()).await.ok()?;
        let receiving = ends[1].receive_at_most(BYTES, Match::any());
        let began = ether.now();
        let sending = peer.send(1, vec![7; BYTES]);
        receiving.await.ok()?;
        let took = ether.now().since(began).as_secs_f64();
        sending.await.ok()?;
        Some(BYTES as f64 / 1e6 / took)
    };
    passing_in_steps(&ether, Duration::from_micros(100), async |_| (), message).await
}
