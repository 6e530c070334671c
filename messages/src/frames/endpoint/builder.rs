//! The configuration of an endpoint, from its policy to its device.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_verbs::floor::pin_to;
use doorbell_verbs::{Config, DatagramsConfig, Nic, OpenError, Qkey, QueuesConfig};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::posted::Posted;
use super::shared::{Runs, Shared};
use super::state::{Settings, State};
use super::wire::Wire;
use super::works::{NOTICES, Works};
use super::{Endpoint, Open, driver, lanes};
use crate::frames::engine::Timing;
use crate::frames::name::{identity, named};
use crate::frames::policy::{Emp, Policy};
use crate::frames::wire::{FRAME_HEADER, LEAST_STRIDE, LONGEST_NAME, MESSAGE_HEADER};

/// The bytes of a datagram that the headers of a frame may take.
const HEADERS: usize = FRAME_HEADER + MESSAGE_HEADER + LONGEST_NAME;
/// The datagrams that may wait to be sent.
const SENDS: usize = 256;

/// The configuration of an endpoint, from its policy to its device.
#[derive(Clone, Debug)]
#[must_use = "an endpoint is opened by `open`"]
pub struct EndpointBuilder {
    policy: Policy,
    timing: Timing,
    frame: Option<usize>,
    receives: usize,
    noted: usize,
    peers: usize,
    longest: usize,
    key: Option<u32>,
    nic: Config,
    apart: Option<Apart>,
}

/// A thread that drives an endpoint alone.
#[derive(Clone, Copy, Debug)]
struct Apart {
    /// The processor of the thread.
    core: Option<usize>,
}

impl Endpoint {
    /// Opens an endpoint on a device, with EMP's policy: `udp:192.0.2.7:5000`, `shm:name`,
    /// `packet:eth0`, …
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(device: &str) -> Result<Self, OpenError> {
        Self::builder().open(device).await
    }

    /// Opens an endpoint on a NIC that is open, with EMP's policy.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint's queues, or this is called outside of a Tokio
    /// runtime.
    pub async fn on(nic: &Nic) -> Result<Self, OpenError> {
        Self::builder().on(nic).await
    }

    /// Returns a builder that configures and opens an endpoint.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            policy: Emp::default().into(),
            timing: Timing::default(),
            frame: None,
            receives: 512,
            noted: 1024,
            peers: 4096,
            longest: 1 << 30,
            key: None,
            nic: Config::default(),
            apart: None,
        }
    }
}

impl EndpointBuilder {
    /// How messages are sent and cleared: [`Emp`] unless set.
    pub fn policy(self, policy: impl Into<Policy>) -> Self {
        Self { policy: policy.into(), ..self }
    }

    /// The most bytes of data in a frame: what the NIC's datagrams hold, unless set. At least 64.
    pub fn frame(self, bytes: usize) -> Self {
        Self { frame: Some(bytes.max(LEAST_STRIDE)), ..self }
    }

    /// How long a peer may take to answer before messages to it and from it are given up: 10
    /// seconds unless set.
    pub fn patience(self, patience: Duration) -> Self {
        Self { timing: Timing { patience, ..self.timing }, ..self }
    }

    /// The shortest and the longest time after which frames are sent again: 4 and 64 ms unless set.
    /// In between, the time follows how long answers take.
    pub fn resend(self, least: Duration, most: Duration) -> Self {
        let most = most.max(least);
        Self { timing: Timing { least, most, ..self.timing }, ..self }
    }

    /// How many datagrams may come before the endpoint handles them: 512 unless set. Further ones
    /// are lost, and sent again.
    pub fn datagrams(self, receives: usize) -> Self {
        Self { receives: receives.max(1), ..self }
    }

    /// How many messages without receives are noted, by their headers alone: 1,024 unless set.
    pub fn notes(self, noted: usize) -> Self {
        Self { noted, ..self }
    }

    /// How many peers the endpoint may have: 4,096 unless set.
    pub fn peers(self, peers: usize) -> Self {
        Self { peers, ..self }
    }

    /// The most bytes of a message that is sent or received, whatever room its receive has: 1 GiB
    /// unless set.
    pub fn longest(self, bytes: usize) -> Self {
        Self { longest: bytes, ..self }
    }

    /// The key that frames to this endpoint must name. Unless set, it is drawn at random, so that
    /// only those who have the endpoint's name can send to it.
    pub fn key(self, key: u32) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The configuration of the NIC, for [`open`](Self::open): among others, who runs it.
    pub fn nic(self, config: Config) -> Self {
        Self { nic: config, ..self }
    }

    /// Has a thread of its own do all of the protocol's work, on one processor if that is named:
    /// the NIC's, and the endpoint's. Programs only post, and look at outcomes. That stands in for
    /// a network card with processors, as EMP's authors used. The thread spins for as long as the
    /// NIC's configuration says, and then sleeps until something comes.
    pub fn apart(self, core: Option<usize>) -> Self {
        Self { apart: Some(Apart { core }), ..self }
    }

    /// Opens the endpoint on a device: `udp:192.0.2.7:5000`, `shm:name`, `packet:eth0`, …
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(self, device: &str) -> Result<Endpoint, OpenError> {
        match self.apart {
            Some(apart) => self.open_apart(device.to_owned(), apart).await,
            None => {
                let nic = self.nic_on(device).await?;
                let (endpoint, shared) = self.start(&nic, Runs::OwnNic).await?;
                shared.runtime.spawn(driver::drive(shared.clone()));
                Ok(endpoint)
            }
        }
    }

    async fn nic_on(&self, device: &str) -> Result<Nic, OpenError> {
        Nic::builder().config(self.nic.clone()).open(device).await
    }

    /// Opens the endpoint on a thread of its own, which drives it until it is dropped.
    async fn open_apart(self, device: String, apart: Apart) -> Result<Endpoint, OpenError> {
        let (tell, told) = oneshot::channel();
        let drives = move || {
            let pinned = apart.core.map_or(Ok(()), pin_to);
            let runtime = pinned.and_then(|()| Builder::new_current_thread().enable_all().build());
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(why) => return drop(tell.send(Err(no_thread(why)))),
            };
            runtime.block_on(async {
                let opened = async {
                    let nic = self.nic_on(&device).await?;
                    self.start(&nic, Runs::Apart).await
                };
                match opened.await {
                    Ok((endpoint, shared)) => {
                        drop(tell.send(Ok(endpoint)));
                        driver::drive(shared).await;
                    }
                    Err(why) => drop(tell.send(Err(why))),
                }
            });
        };
        let thread = std::thread::Builder::new().name("doorbell-frames".to_owned());
        thread.spawn(drives).map_err(no_thread)?;
        told.await.map_err(|_| NO_RUNTIME)?
    }

    /// Opens the endpoint on a NIC that is open.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint's queues, or this is called outside of a Tokio
    /// runtime.
    pub async fn on(self, nic: &Nic) -> Result<Endpoint, OpenError> {
        let (endpoint, shared) = self.start(nic, Runs::Shared).await?;
        shared.runtime.spawn(driver::drive(shared.clone()));
        Ok(endpoint)
    }

    /// Makes the endpoint, and takes lanes of peers. The caller drives it.
    async fn start(&self, nic: &Nic, runs: Runs) -> Result<(Endpoint, Arc<Shared>), OpenError> {
        let shared = self.make(nic, runs)?;
        let listener = nic.listen(shared.name.service()).await?;
        let accepts = shared.runtime.spawn(lanes::accept(Arc::downgrade(&shared), listener));
        let open = Open { shared: shared.clone(), accepts: accepts.abort_handle() };
        Ok((Endpoint(Arc::new(open)), shared))
    }

    /// Makes the queues and the state of the endpoint.
    fn make(&self, nic: &Nic, runs: Runs) -> Result<Arc<Shared>, OpenError> {
        Handle::try_current().map_err(|_| NO_RUNTIME)?;
        let mtu = nic.capabilities().mtu.bytes();
        let most = mtu - HEADERS;
        let stride = self.frame.unwrap_or(most);
        if stride > most {
            return Err(OpenError::Config {
                field: "EndpointBuilder::frame",
                found: stride.to_string(),
                allowed: format!("at most {most}"),
                why: "a frame is a datagram of this NIC",
            });
        }
        let completions = nic.completion_queue(self.receives + SENDS + 4096)?;
        let domain = nic.domain();
        let key = Qkey(self.key.unwrap_or_else(drawn_key));
        let datagrams = domain.datagrams(&DatagramsConfig {
            send_depth: SENDS,
            receive_depth: self.receives,
            ..DatagramsConfig::new(&completions, key)
        })?;
        let name = named(nic.address().to_string(), datagrams.qpn(), key);
        let notices = domain.shared_receives_to(&completions, NOTICES)?;
        let queues = QueuesConfig::new(&completions).share(&notices);
        let mut works = Works::new(completions, datagrams.receive, notices);
        works.fill(mtu);
        let settings = Settings {
            policy: self.policy,
            timing: self.timing,
            stride: stride as u16,
            longest: self.longest,
            most_peers: self.peers,
        };
        let posted = Posted::new(self.noted, self.longest, domain.clone());
        let wire = Wire::new(datagrams.send, identity(&name), name.to_string());
        Ok(Arc::new_cyclic(|shared| {
            let endpoint: Weak<Shared> = shared.clone();
            let state = State::new(settings, posted, wire, endpoint);
            Shared::new(name, (domain, queues), works, runs, state)
        }))
    }
}

/// The error of an endpoint that was opened where no runtime serves it.
const NO_RUNTIME: OpenError = OpenError::NoRuntime { what: "an endpoint of frames" };

fn no_thread(source: io::Error) -> OpenError {
    OpenError::System { what: "starting the thread of an endpoint", source }
}

/// Draws a key from the system's randomness, by which hash maps are seeded. The highest bit is left
/// free, since InfiniBand reserves such keys for privileged queue pairs.
fn drawn_key() -> u32 {
    (RandomState::new().build_hasher().finish() as u32) >> 1
}
