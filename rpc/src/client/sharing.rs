//! The NICs that the channels of a process share.
//!
//! Channels that were made in the same runtime, on the same device and with the same configuration
//! of the NIC, have one NIC together, and the tasks that serve it. Channels of different runtimes
//! share none, since a runtime that ends takes what it serves with it. A NIC is closed when the
//! last of its channels is dropped.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use doorbell_am::{Bundle, BundleConfig, EndpointBuilder, OpenError, WeakBundle};
use doorbell_verbs::Config;
use doorbell_verbs::floor::locked;
use tokio::runtime;

/// What the channels have in common that share a NIC.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    device: String,
    nic: Config,
    bundle: BundleConfig,
    runtime: runtime::Id,
}

/// The entry of a NIC: locked while the NIC is being opened, so that others wait for it.
type Entry = Arc<tokio::sync::Mutex<Option<WeakBundle>>>;

/// The NICs of the process that channels share.
static ENTRIES: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// Where a channel's NIC is to be opened.
pub struct Place<'d> {
    pub device: &'d str,
    /// Whether the device is only one of many that would do, as others are for other channels.
    pub is_any: bool,
}

impl Place<'_> {
    /// The text that places have in common at which channels share a NIC. A NIC at any address of
    /// the loopback network is as good as one at another.
    fn shared(&self) -> &str {
        let is_loopbacks = self.is_any && self.device.starts_with("udp:127.");
        match (is_loopbacks, self.device.rsplit_once(':')) {
            (true, Some((_, "4791"))) => "udp:127.0.0.0/8:4791",
            _ => self.device,
        }
    }
}

/// Returns the bundle at a place that other channels of this runtime have opened with the same
/// configuration, or opens the device.
///
/// # Errors
/// When the device can't be opened.
pub async fn shared_bundle(
    place: Place<'_>,
    endpoint: &EndpointBuilder,
    runtime: &runtime::Handle,
) -> Result<Bundle, OpenError> {
    let (nic, bundle) = endpoint.shared_parts();
    let (nic, bundle) = (nic.clone(), bundle.clone());
    let (device, runtime) = (place.shared().to_owned(), runtime.id());
    let entry = entry_of(Key { device, nic, bundle, runtime });
    let mut there = entry.lock().await;
    if let Some(bundle) = there.as_ref().and_then(WeakBundle::upgrade) {
        return Ok(bundle);
    }
    let bundle = endpoint.open_bundle(place.device).await?;
    *there = Some(bundle.weak());
    Ok(bundle)
}

/// Returns the entry of a NIC, and forgets the entries of NICs that are closed.
fn entry_of(key: Key) -> Entry {
    let mut entries = locked(&ENTRIES);
    if let Some(entry) = entries.get(&key) {
        return entry.clone();
    }
    entries.retain(|_, entry| {
        let is_open = |there: &Option<WeakBundle>| there.as_ref().is_some_and(WeakBundle::is_there);
        // Whoever opens the NIC has the lock.
        entry.try_lock().map_or(true, |there| is_open(&there)) || Arc::strong_count(entry) > 1
    });
    entries.entry(key).or_default().clone()
}
