//! Opening NICs with settings that differ from the defaults.

use std::time::Duration;

use doorbell_core::nic::{KeepAlive, Numbering};
use doorbell_transports::Device;

use super::config::{Config, Progress};
use super::handle::Nic;
use crate::control::Encryption;
use crate::error::OpenError;

/// A builder of NICs. Every setting has a default, and [`open`](Self::open) opens the device.
///
/// ```
/// use std::time::Duration;
///
/// use doorbell_verbs::Nic;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = Nic::builder().spin(Duration::ZERO).queue_pairs(64).open("shm").await?;
/// assert!(nic.address().to_string().starts_with("shm:"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, Debug)]
#[must_use = "nothing is open before `open`"]
pub struct NicBuilder(Config);

impl Nic {
    /// Opens a device by name with the default [configuration](Config): a NIC of its own. Called in
    /// a Tokio runtime, that runtime runs the NIC when no task waits.
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
    /// The UDP port is RoCE's own, 4791, if none is named; for port 0, the system chooses one.
    /// [`address`](Self::address) returns the actual address, for peers to use.
    ///
    /// A NIC has one address, even if it is opened at a wildcard:
    /// [one](doorbell_transports::udp#wildcards) at which other machines reach it. Processes of
    /// this machine must use that address, too.
    ///
    /// A host name must be one of this machine's. Of its addresses, one that is not a loopback
    /// address is preferred, and an IPv4 address to an IPv6 address. The system's resolver looks
    /// the name up, on a thread that may block. While this waits for other NICs of an interface,
    /// other tasks run, of which one may run such a NIC.
    ///
    /// # Errors
    /// Returns an error when the name is none of these, or the device can't be opened. The error
    /// says what to do.
    ///
    /// # Panics
    /// Panics in a runtime that was built without I/O.
    pub async fn open(device: &str) -> Result<Self, OpenError> {
        Self::builder().open(device).await
    }

    /// Makes a NIC on any device, with the default configuration: on a
    /// [wrapper](doorbell_transports::wrap), a simulated network's device, or one of your own.
    ///
    /// # Errors
    /// Returns an error when the system has no random numbers, or no descriptors.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub fn on(device: impl Device) -> Result<Self, OpenError> {
        Self::builder().on(device)
    }

    /// Makes a builder, by which a NIC is configured and opened.
    pub fn builder() -> NicBuilder {
        NicBuilder::default()
    }
}

impl NicBuilder {
    /// Replaces the whole configuration.
    pub fn config(self, config: Config) -> Self {
        Self(config)
    }

    /// Sets the thread or tasks that run the NIC; tasks that wait, by default.
    pub fn progress(self, progress: Progress) -> Self {
        Self(Config { progress, ..self.0 })
    }

    /// Sets how long a waiting task [spins](Config::spin) on a silent device before it sleeps;
    /// 50 µs by default.
    pub fn spin(self, time: Duration) -> Self {
        Self(Config { spin: time, ..self.0 })
    }

    /// Sets whether packets may be sent in runs that the interface or the kernel
    /// [segments](Config::offload), which is so by default.
    pub fn offload(self, offloads: bool) -> Self {
        Self(Config { offload: offloads, ..self.0 })
    }

    /// Sets whether packets are taken from [strangers](Config::strangers) on `udp`, which is so
    /// by default; a client need not.
    pub fn strangers(self, hears: bool) -> Self {
        Self(Config { strangers: hears, ..self.0 })
    }

    /// Sets the most [queue pairs](Config::queue_pairs); 65,536 by default.
    pub fn queue_pairs(self, most: usize) -> Self {
        Self(Config { queue_pairs: most, ..self.0 })
    }

    /// Sets the most [registrations](Config::registrations) of memory; 4096 by default.
    pub fn registrations(self, most: usize) -> Self {
        Self(Config { registrations: most, ..self.0 })
    }

    /// Sets the most [completions](Config::completions) that wait for futures to take them;
    /// 4096 by default.
    pub fn completions(self, most: usize) -> Self {
        Self(Config { completions: most, ..self.0 })
    }

    /// Sets how long peers may be [silent](Config::keep_alive) before the connections to them
    /// break.
    pub fn keep_alive(self, times: KeepAlive) -> Self {
        Self(Config { keep_alive: times, ..self.0 })
    }

    /// Sets how long a peer's connection manager may take to [answer](Config::connect_timeout);
    /// 4 seconds by default.
    pub fn connect_timeout(self, time: Duration) -> Self {
        Self(Config { connect_timeout: time, ..self.0 })
    }

    /// Sets how long a program may take to [accept](Config::accept_timeout) a peer; 20 seconds
    /// by default.
    pub fn accept_timeout(self, time: Duration) -> Self {
        Self(Config { accept_timeout: time, ..self.0 })
    }

    /// Sets how long the numbers of a connection that has ended [rest](Config::time_wait).
    pub fn time_wait(self, time: Duration) -> Self {
        Self(Config { time_wait: time, ..self.0 })
    }

    /// Sets the [encryption](Config::encryption) of connections; none by default.
    pub fn encryption(self, encryption: impl Into<Encryption>) -> Self {
        Self(Config { encryption: encryption.into(), ..self.0 })
    }

    /// Sets the [seed](Config::seed) of the numbers that nobody must guess, for tests that are
    /// to run the same again.
    pub fn seed(self, seed: u64) -> Self {
        Self(Config { seed: Some(seed), ..self.0 })
    }

    /// Opens a [device](Nic::open) by name.
    ///
    /// # Errors
    /// Returns an error when the name is none, the device can't be opened, or the configuration
    /// can't be used. The error says what to do.
    ///
    /// # Panics
    /// Panics in a runtime that was built without I/O.
    pub async fn open(self, device: &str) -> Result<Nic, OpenError> {
        Nic::open_async(device, self.0).await
    }

    /// Opens a [device](Nic::open) by name, for programs without `async`. This blocks the thread
    /// while a host name is looked up, and while other processes of an interface are waited for.
    ///
    /// # Errors
    /// Returns an error as [`open`](Self::open) does.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub fn open_blocking(self, device: &str) -> Result<Nic, OpenError> {
        Nic::open_blocking(device, self.0)
    }

    /// Makes the NIC [on](Nic::on) any device. A `packet` device must have been opened with the
    /// default [`Numbering`]: it passes on the packets of that numbering alone. One of another
    /// numbering is for [`on_numbered`](Self::on_numbered).
    ///
    /// # Errors
    /// Returns an error when the configuration can't be used.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub fn on(self, device: impl Device) -> Result<Nic, OpenError> {
        self.on_numbered(device, Numbering::default())
    }

    /// Makes the NIC [on](Nic::on) any device, with queue pair numbers of a numbering: that with
    /// which a `packet` device was opened, so that several processes share an interface.
    ///
    /// # Errors
    /// Returns an error when the configuration or the numbering can't be used.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub fn on_numbered(self, device: impl Device, numbering: Numbering) -> Result<Nic, OpenError> {
        Nic::over(device, numbering, self.0)
    }
}
