//! A NIC: a device, opened.

pub(crate) mod domain;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod statistics;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doorbell_core::cm::{self, ConnectionManager, Extensions};
use doorbell_core::nic::{self, KeepAlive, Numbering, ResourceError, Seed};
use doorbell_core::wire::cm::CmTimeout;
use doorbell_core::wire::{CaGuid, ServiceId};
use doorbell_transports::floor::naming_limits;
use doorbell_transports::packet::Packet;
use doorbell_transports::packet_v2::{PacketV2, Settings};
use doorbell_transports::sharing::{Event as Shares, Membership, TAG_BITS};
use doorbell_transports::shm::Shm;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, Capabilities, Device, Spec, Trouble};
use tokio::sync::broadcast;

use crate::completions::{CompletionQueue, UntilCompletion};
use crate::connect::{Listener, listen};
use crate::error::{ListenRefused, NicError};
use crate::events::AsyncEvent;
use crate::hand::AtHand;
use crate::nic::domain::Domain;
use crate::nic::names::find_own;
use crate::progress::{
    Control, Engine, Errands, Look, Machine, Pacing, Setting, Shared, Watch, block_on,
};
use crate::statistics::Statistics;
use crate::waiting::{Until, UntilInHand, WaitFor};

/// Who runs the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase", deny_unknown_fields))]
pub enum Progress {
    /// Whoever waits; and when nobody does, a task of the runtime in which it was opened, or a
    /// thread if that was in none.
    #[default]
    Inline,
    /// A thread of its own, on one processor if that is named. It spins for as long as
    /// [`spin`](Config::spin) says, and then sleeps until something comes.
    Dedicated {
        /// Which processor, by its number.
        #[cfg_attr(feature = "serde", serde(default))]
        core: Option<usize>,
    },
}

/// How a NIC is run, and how much it holds.
///
/// With the feature `serde` it can be read from a file. What is not said there is as by default;
/// what is said and unknown is an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// Who runs it.
    pub progress: Progress,
    /// For how long somebody who waits spins on a silent device, before sleeping in the kernel; not
    /// at all while messages come by themselves, 0.4 ms or eight such times after those before.
    /// That wakes 20 to 30 µs late, and costs nothing while it lasts; spinning costs a core.
    /// [`Duration::MAX`] is for ever.
    pub spin: Duration,
    /// Whether packets may go in runs that the interface or the kernel cuts, where it can. Without,
    /// each is sent in a frame of its own: slower by far, and what a network without that would
    /// carry.
    pub offload: bool,
    /// The most queue pairs, with those whose connection is over and whose numbers
    /// [rest](Self::time_wait): from 1 to 16,384, and fewer where several processes share the
    /// interface.
    pub queue_pairs: usize,
    /// The most registrations of memory, rounded up to a power of two; at most 2²⁰.
    pub registrations: usize,
    /// The most completions of queue pairs whose requests are futures that wait for a turn; at
    /// least one more than there are queue pairs.
    pub completions: usize,
    /// How long peers may be silent before the connections to them break: with requests under way,
    /// a second, which is how soon the end of a peer is noticed whose end nobody tells. It decides
    /// too how long a peer may be stopped: see [`KeepAlive`].
    pub keep_alive: KeepAlive,
    /// How long a peer's connection manager may take to answer: 4 seconds unless told otherwise. A
    /// [connection](Domain::connect) that is asked for is given up after that time if nothing at
    /// all comes back, an [accepted](crate::Incoming::accept) one if the peer does not confirm it,
    /// and the [end](crate::Connection::disconnect) of one goes without the peer's answer then. It
    /// is told to the peer with the request, as closely as that can say it. From 10 ms to 10
    /// minutes.
    pub connect_timeout: Duration,
    /// How long a program may take to accept a peer: 20 seconds unless told otherwise. Whoever asks
    /// this side is given up after that time at the latest, be it accepted or not; and this side
    /// waits so long for a peer whose connection manager says that its program has not decided.
    /// From 10 ms to 10 minutes.
    pub accept_timeout: Duration,
    /// For how long the numbers of a connection that is over are not used again: longer than any
    /// packet of it may be on its way. None, on networks that keep no packet, is allowed.
    pub time_wait: Duration,
    /// Where numbers that nobody is to guess come from, and the GUID that tells this NIC from any
    /// other that is opened at the same address before or after: the system, unless a test wants
    /// the same run again. No two NICs that meet the same peers are to have one seed.
    pub seed: Option<u64>,
}

impl Default for Config {
    /// Run inline, with 50 µs of spinning, and room for a thousand queue pairs.
    fn default() -> Self {
        let cm::Config { time_wait, unconfirmed, undecided, .. } = cm::Config::new(CaGuid(0));
        Self {
            progress: Progress::Inline,
            spin: Duration::from_micros(50),
            offload: true,
            queue_pairs: 1024,
            registrations: 4096,
            completions: 4096,
            keep_alive: KeepAlive::default(),
            connect_timeout: unconfirmed,
            accept_timeout: undecided,
            time_wait,
            seed: None,
        }
    }
}

/// A network adapter in software, over a device. Clones are handles to the same; when the last of
/// them, and of all that was made with it, is dropped, it is gone.
///
/// ```
/// use doorbell::verbs::{Config, Nic, ServiceId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let name = |end| format!("shm:nic-example/{end}/{}", std::process::id());
/// # let (here, there) = (name(0), name(1));
/// let server = Nic::open(&there, Config::default())?; // "shm:job/1", "udp:192.0.2.7", …
/// let mut listener = server.listen(ServiceId(7)).await?;
/// let client = Nic::open(&here, Config::default())?;
///
/// let (one, other) = (client.domain(), server.domain());
/// let accepted = async { listener.accept().await.accept(&other).await };
/// let (asked, accepted) = tokio::join!(one.connect(&there, ServiceId(7)), accepted);
/// let (asked, accepted) = (asked?, accepted?);
///
/// let receives = accepted.recv(Vec::with_capacity(64));
/// let (sent, message) = tokio::join!(asked.send(b"hello"), receives);
/// sent?;
/// assert_eq!(message?.data, b"hello");
/// # Ok(())
/// # }
/// ```
pub struct Nic(
    /// There until it is dropped.
    Option<Arc<Shared>>,
);

impl Clone for Nic {
    fn clone(&self) -> Self {
        self.shared().taken_up();
        Self(self.0.clone())
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.let_go();
        }
    }
}

/// How often a peer is asked for patience at least, within the time that a program has to decide:
/// each time that it repeats its request, which most do 14 or 15 times.
const PLEAS: u32 = 14;

/// How long the other processes of an interface have to answer.
const SHARING: Duration = Duration::from_secs(3);

impl Nic {
    /// Opens a device by name. Called in a Tokio runtime, that runs it when nobody waits.
    ///
    /// | name | device |
    /// |---|---|
    /// | `shm:job/0` | shared memory with processes of this machine, joined by that name |
    /// | `shm` | shared memory, joined by a name that nobody else has |
    /// | `udp:192.0.2.7`, `udp:[::1]:5000` | a UDP socket at one of this machine's addresses, RoCE v2 |
    /// | `udp:node7:5000`, `udp:localhost` | the same at an address that a host name stands for |
    /// | `udp:0.0.0.0:5000`, `udp:[::]` | the same at the address by which other machines come |
    /// | `packet:eth0` | raw Ethernet on that interface, RoCE v1 |
    /// | `packet-v2:eth0` | the same, RoCE v2, with an IPv6 address of its own |
    /// | `packet-v2:eth0,192.0.2.7/24` | the same with that address, in a network of 24 bits |
    ///
    /// A UDP port that is not named is RoCE's own, 4791; of port 0, the system chooses one.
    /// Whatever was left to the system, [`address`](Self::address) tells, for peers to come by.
    ///
    /// A NIC has one address, also where it is opened at a wildcard:
    /// [one](doorbell_transports::udp#wildcards) by which other machines come, and by which this
    /// machine's own processes have to come, too.
    ///
    /// A host name must be one of this machine's; of its addresses, one that is not loopback's is
    /// taken where there is one, and rather an IPv4 address. It is looked up before this returns,
    /// which blocks the thread for as long as the system's resolver takes. An address never does
    /// that; and in asynchronous code there is [`open_async`](Self::open_async).
    ///
    /// # Errors
    /// When it is no such name, the device can't be opened, or the configuration can't be; the
    /// error says what to do.
    ///
    /// # Panics
    /// In a runtime that was built without I/O.
    pub fn open(spec: &str, config: Config) -> Result<Self, NicError> {
        Self::open_as(spec.parse()?, config)
    }

    /// Opens a device by name as [`open`](Self::open) does, for asynchronous code: where the name
    /// has a host name in it, that is looked up on a thread that may block, and this waits for it;
    /// and while the other NICs of an interface are waited for, other tasks run, of which one may
    /// be what runs such a NIC.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Panics
    /// As [`open`](Self::open).
    pub async fn open_async(spec: &str, config: Config) -> Result<Self, NicError> {
        match spec.parse()? {
            Spec::UdpNamed(host) => Self::open_as(Spec::Udp(find_own(host).await?), config),
            Spec::Packet(interface) => {
                let mut joining = Joining::new(&interface)?;
                while !joining.is_welcome()? {
                    tokio::task::yield_now().await;
                }
                Self::over_packet(&interface, joining.sharing, config)
            }
            spec => Self::open_as(spec, config),
        }
    }

    fn open_as(spec: Spec, config: Config) -> Result<Self, NicError> {
        let own = Numbering::default();
        match spec {
            Spec::Shm(Some(name)) => Self::build(Shm::join(&name)?, own, None, config),
            Spec::Shm(None) => Self::build(Shm::join_unique()?, own, None, config),
            Spec::Udp(address) => Self::over_sockets(Udp::open(address)?, config),
            Spec::UdpNamed(host) => Self::over_sockets(Udp::open_named(&host)?, config),
            Spec::PacketV2(interface, network) => {
                let settings = Settings { network, ..Settings::default() };
                let device = PacketV2::open(&interface, settings)?;
                let device = if config.offload { device } else { device.without_offload() };
                Self::build(device, own, None, config)
            }
            Spec::Packet(interface) => {
                let mut joining = Joining::new(&interface)?;
                while !joining.is_welcome()? {}
                Self::over_packet(&interface, joining.sharing, config)
            }
        }
    }

    fn over_packet(interface: &str, sharing: Membership, config: Config) -> Result<Self, NicError> {
        let numbering = sharing.numbering();
        let device = Packet::open(interface, numbering)?;
        let device = if config.offload { device } else { device.without_offload() };
        Self::build(device, numbering, Some(sharing), config)
    }

    fn over_sockets(device: Udp, config: Config) -> Result<Self, NicError> {
        let device = if config.offload { device } else { device.without_offload() };
        Self::build(device, Numbering::default(), None, config)
    }

    /// A NIC over any device: a [wrapper](doorbell_transports::wrap), a simulated network's, one of
    /// your own.
    ///
    /// # Errors
    /// When the configuration can't be.
    ///
    /// # Panics
    /// As [`open`](Self::open).
    pub fn over(device: impl Device, config: Config) -> Result<Self, NicError> {
        Self::build(device, Numbering::default(), None, config)
    }

    fn build(
        device: impl Device,
        numbering: Numbering,
        sharing: Option<Membership>,
        config: Config,
    ) -> Result<Self, NicError> {
        config.check(numbering)?;
        let Capabilities { mtu, lossless, run, .. } = *device.capabilities();
        let owner = sharing.is_none();
        let seeds = Seeds::new(config.seed);
        let core = nic::Config {
            queue_pairs: config.queue_pairs,
            registrations: config.registrations,
            numbering,
            keep_alive: config.keep_alive,
            lossless,
            runs: run > 1,
            ..nic::Config::default()
        };
        let mut nic = nic::Nic::new(core, seeds.seed(0)?)?;
        let completions = nic.completion_queue(config.completions)?;
        let manager = cm::Config {
            tag: numbering.tag,
            tag_bits: TAG_BITS,
            owner,
            connections: config.queue_pairs,
            time_waits: config.queue_pairs.max(1024),
            time_wait: config.time_wait,
            unconfirmed: config.connect_timeout,
            undecided: config.accept_timeout,
            patience: CmTimeout::at_least(config.accept_timeout / PLEAS),
            half_open: (config.queue_pairs / 4).max(1),
            // The peer has the busy time to answer a probe; and the NIC's clock is read now and
            // then.
            verification: config.keep_alive.busy.saturating_mul(5) / 4,
            extensions: Extensions::WRITE_WITH_METADATA,
            ..cm::Config::new(seeds.seed(0)?.guid())
        };
        let manager = ConnectionManager::new(manager, seeds.seed(1)?)?;
        let setting = Setting {
            sharing,
            mtu,
            patience: config.keep_alive.busy,
            connect_timeout: config.connect_timeout,
        };
        let control = Control::new(nic, manager, completions, setting);
        let errands = control.errands.clone();
        Self::start(Box::new(Engine::new(control, device)), errands, &config)
    }

    fn start(
        machine: Box<dyn Machine>,
        errands: Arc<Errands>,
        config: &Config,
    ) -> Result<Self, NicError> {
        let system = |what| move |source| NicError::System { what, source: naming_limits(source) };
        let watch =
            machine.watched().and_then(|watched| Watch::new(watched, config.spin.is_zero()));
        let watch = watch.map_err(system("watching the device"))?;
        let dedicated = matches!(config.progress, Progress::Dedicated { .. });
        let pacing = Pacing { spin: config.spin, dedicated };
        let shared = Shared::new(machine, errands, pacing, watch);
        tracing::debug!(address = %shared.address, ?config, "opened");
        match config.progress {
            Progress::Inline => shared.keep_watch().map_err(system("keeping watch"))?,
            Progress::Dedicated { core } => {
                let spin = (config.spin != Duration::MAX).then_some(config.spin);
                shared.dedicate(core, spin).map_err(system("giving it a thread of its own"))?;
            }
        }
        Ok(Self(Some(shared)))
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.0.as_ref().expect("it is there until this is dropped")
    }

    /// Where peers reach it: what they pass to [`Domain::connect`], as text.
    pub fn address(&self) -> &Address {
        &self.shared().address
    }

    /// How many queue pairs were let go and still take a place: their connections are being ended,
    /// or their numbers rest for the [time-wait](Config::time_wait). Each of them frees its place
    /// without anybody's doing.
    pub fn resting_queue_pairs(&self) -> usize {
        self.shared().with(|machine| machine.control().leaving())
    }

    /// What its device can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared().capabilities
    }

    /// A new protection domain.
    pub fn domain(&self) -> Domain {
        let domain = self.shared().with(|machine| machine.control().nic.domain());
        Domain::new(self.clone(), domain)
    }

    /// Makes a completion queue of so many entries, of which each receive queue that ends there
    /// takes one.
    ///
    /// # Errors
    /// When that is none, or too many.
    pub fn completion_queue(&self, entries: usize) -> Result<CompletionQueue, ResourceError> {
        let made = self.shared().with(|machine| machine.control().nic.completion_queue(entries));
        let (id, queue) = made?;
        Ok(CompletionQueue::new(self.clone(), id, queue))
    }

    /// Listens to a service, with room for 128 peers that are not decided about.
    ///
    /// # Errors
    /// When somebody does already, in this process or in another of the interface.
    pub async fn listen(&self, service: ServiceId) -> Result<Listener, ListenRefused> {
        self.listen_with(service, 128).await
    }

    /// The same with room for so many peers. Who asks beyond that asks again later, by itself; or
    /// takes the place of one whose host has more of them, or who has waited for a while, and who
    /// then asks again.
    ///
    /// Who says to ask may be anybody: the address of a request is not proven until its sender has
    /// confirmed the connection, and a quarter of the [queue pairs](Config::queue_pairs) at most
    /// are given to connections that are not confirmed.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub async fn listen_with(
        &self,
        service: ServiceId,
        backlog: usize,
    ) -> Result<Listener, ListenRefused> {
        listen(self, service, backlog).await
    }

    /// Waits until a look at something that peers change finds what it looks for: a word in
    /// registered memory, say.
    ///
    /// The look is taken after each turn of the NIC, with the NIC in hand: it must not use it.
    ///
    /// ```
    /// # use doorbell::verbs::{Nic, Registered};
    /// async fn until_written(nic: &Nic, memory: &Registered) -> u64 {
    ///     nic.until(|| memory.load(0).ok().filter(|&word| word != 0)).await
    /// }
    /// ```
    #[inline]
    pub fn until<T, L: FnMut() -> Option<T>>(&self, look: L) -> Until<'_, L> {
        Until(self.until_in_hand(look))
    }

    /// The same, coming back with the NIC in hand: what is [posted](crate::floor::Hand::post)
    /// before that is let go leaves at once. Nothing of this NIC is to be awaited, or called, while
    /// it is in hand.
    #[doc(hidden)]
    #[inline]
    pub fn until_in_hand<T, L: FnMut() -> Option<T>>(&self, look: L) -> UntilInHand<'_, L> {
        UntilInHand::new(self.shared(), look)
    }

    /// Waits until there is a completion, and comes back with the NIC in hand, if nobody else has
    /// it: the completion is [peeked at](CompletionQueue::peek) where it stands, answered, and only
    /// then [taken](CompletionQueue::look).
    ///
    /// ```
    /// # use doorbell::verbs::work::Send;
    /// # use doorbell::verbs::{CompletionQueue, Memory, Nic, ReceiveQueue, SendQueue};
    /// # type Outcome = Result<(), Box<dyn std::error::Error>>;
    /// # async fn answer(nic: &Nic, send: &mut SendQueue, receive: &mut ReceiveQueue,
    /// #     received: &mut CompletionQueue) -> Outcome {
    /// let mut hand = nic.until_completion(received).await;
    /// let came = received.peek().expect("it was waited for");
    /// came.outcome?;
    /// hand.post(send, Send::inline(b"pong")?.unsignalled())?;
    /// drop(hand);
    /// let mut answered = received.look().expect("it is still there");
    /// let buffer = std::mem::replace(&mut answered.memory, Memory::None);
    /// drop(answered);
    /// receive.post(0, buffer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// When the queue is another NIC's.
    #[doc(hidden)]
    #[inline]
    pub fn until_completion<'q>(
        &self,
        completions: &'q mut CompletionQueue,
    ) -> UntilCompletion<'_, 'q> {
        completions.until_ready(self)
    }

    /// Waits for what `look` finds, where who makes it be there knows whom to wake: for layers
    /// above, of whose many waiters each is told of its own.
    #[doc(hidden)]
    #[inline]
    pub fn wait_for<L: Look>(&self, look: L) -> WaitFor<'_, L> {
        WaitFor::new(self.shared(), look)
    }

    /// What happens asynchronously from here on. A program that does not take events misses the
    /// oldest.
    pub fn events(&self) -> broadcast::Receiver<AsyncEvent> {
        self.shared().with(|machine| machine.control().events.subscribe())
    }

    /// Takes a turn, unless somebody else does. Whether anything came or went.
    ///
    /// Nobody needs to call it: who waits does. It is for programs without a runtime that poll by
    /// themselves.
    pub fn turn(&self) -> bool {
        self.shared().turn()
    }

    /// Takes a turn, unless somebody else does, and then a look at what has come, with the NIC in
    /// hand if this has had the turn: what is [posted](AtHand::post) by that leaves at once.
    ///
    /// A look that finds something is taken to be gone on with at once: what the turn called for,
    /// if nothing waits to be sent, goes with what is posted or turned next; or within about a
    /// millisecond, if the runtime in which the NIC was opened gets to run meanwhile. That is
    /// acknowledgements above all, for which the peer waits longer then: this is for those whose
    /// messages are answered by messages.
    ///
    /// ```
    /// # use doorbell::verbs::work::Send;
    /// # use doorbell::verbs::{CompletionQueue, Nic, Refused, SendQueue, WorkRequest};
    /// /// Answers what has come. Whether anything had.
    /// fn answer(nic: &Nic, queue: &mut SendQueue, completions: &mut CompletionQueue) -> bool {
    ///     let answered = nic.turn_and_find(|mut nic| {
    ///         let _message = completions.look()?;
    ///         nic.post(queue, Send::inline(b"here").ok()?).ok()
    ///     });
    ///     answered.is_some()
    /// }
    /// ```
    #[doc(hidden)]
    #[inline]
    pub fn turn_and_find<R>(&self, look: impl FnOnce(AtHand<'_>) -> Option<R>) -> Option<R> {
        self.shared().turn_and_find(look)
    }

    /// Runs a future on this thread, without a runtime, and sees to this NIC meanwhile.
    ///
    /// In a task of a runtime it keeps all others of its thread waiting, as anything does that
    /// blocks.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(self.shared(), future)
    }

    /// Ends all connections, of which peers are told, and closes the device: its address can be
    /// opened again when this returns. Handles that are left reach nobody any more. For layers of
    /// this workspace that have opened the NIC for themselves, and of which a task may still have
    /// a handle when they end.
    ///
    /// In a handler that runs with the NIC in hand, the device is closed with the last handle
    /// instead.
    #[doc(hidden)]
    pub fn close(&self) {
        self.shared().close();
    }

    /// What it has counted.
    pub fn statistics(&self) -> Statistics {
        self.shared().with(|machine| {
            let device = machine.statistics();
            let control = machine.control();
            Statistics {
                nic: *control.nic.counters(),
                device,
                connections: *control.manager.counters(),
                objects: control.nic.objects(),
            }
        })
    }

    /// What keeps it from working at this moment, if something does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.shared().with(|machine| machine.trouble())
    }
}

/// Handles to the same NIC are equal.
impl PartialEq for Nic {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.shared(), other.shared())
    }
}

impl Eq for Nic {}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nic({})", self.address())
    }
}

/// A NIC that is about to join those that use an interface, who give it its numbers.
struct Joining {
    sharing: Membership,
    since: Instant,
}

impl Joining {
    fn new(interface: &str) -> Result<Self, NicError> {
        Ok(Self { sharing: Membership::of_interface(interface)?, since: Instant::now() })
    }

    /// Looks whether the others have answered, and pauses for a moment if they have not.
    ///
    /// # Errors
    /// When they have not answered for too long.
    fn is_welcome(&mut self) -> Result<bool, NicError> {
        loop {
            match self.sharing.turn() {
                Some(Shares::Welcome) => return Ok(true),
                Some(_) => {}
                None if self.since.elapsed() < SHARING => {
                    std::thread::sleep(Duration::from_micros(100));
                    return Ok(false);
                }
                None => {
                    let found = io::Error::from(io::ErrorKind::TimedOut).to_string();
                    return Err(NicError::Alone(self.sharing.trouble().unwrap_or(Trouble {
                        what: "sharing an interface".to_owned(),
                        found,
                        advice: "look for processes there that have stopped",
                    })));
                }
            }
        }
    }
}

/// What is not to be guessed.
struct Seeds(Option<u64>);

impl Seeds {
    fn new(number: Option<u64>) -> Self {
        Self(number)
    }

    /// The system's, or one of a test's run.
    fn seed(&self, which: u64) -> Result<Seed, NicError> {
        match self.0 {
            Some(number) => Ok(Seed::from_number(number.wrapping_mul(2).wrapping_add(which))),
            None => doorbell_transports::random()
                .map(Seed)
                .map_err(|source| NicError::System { what: "getting random numbers", source }),
        }
    }
}
