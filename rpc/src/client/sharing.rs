//! The NICs that the channels of a process share.
//!
//! Channels that were made in the same runtime, on the same device and with the same configuration
//! of the NIC, have one NIC together, and the tasks that serve it. Channels of different runtimes
//! share none, since a runtime that ends takes what it serves with it. A NIC is closed when the
//! last of its channels is dropped.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use doorbell_am::{Bundle, BundleConfig, EndpointBuilder, OpenError, WeakBundle};
use doorbell_verbs::Config;
use tokio::runtime;

/// What the channels have in common that share a NIC.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    device: String,
    nic: Config,
    bundle: BundleConfig,
    runtime: runtime::Id,
}

/// The place of a NIC: locked while the NIC is being opened, so that others wait for it.
type Place = Arc<tokio::sync::Mutex<Option<WeakBundle>>>;

/// The NICs of the process that channels share.
static PLACES: LazyLock<Mutex<HashMap<Key, Place>>> = LazyLock::new(Mutex::default);

/// Returns the bundle on a device that other channels of this runtime have opened with the same
/// configuration, or opens the device.
///
/// # Errors
/// When the device can't be opened.
pub async fn shared_bundle(
    device: &str,
    endpoint: &EndpointBuilder,
    runtime: &runtime::Handle,
) -> Result<Bundle, OpenError> {
    let (nic, bundle) = endpoint.shared_parts();
    let (nic, bundle) = (nic.clone(), bundle.clone());
    let place = place_of(Key { device: device.to_owned(), nic, bundle, runtime: runtime.id() });
    let mut there = place.lock().await;
    if let Some(bundle) = there.as_ref().and_then(WeakBundle::upgrade) {
        return Ok(bundle);
    }
    let bundle = endpoint.open_bundle(device).await?;
    *there = Some(bundle.weak());
    Ok(bundle)
}

/// Returns the place of a NIC, and forgets the places of NICs that are closed.
fn place_of(key: Key) -> Place {
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = places.get(&key) {
        return place.clone();
    }
    places.retain(|_, place| {
        let is_open = |there: &Option<WeakBundle>| there.as_ref().is_some_and(WeakBundle::is_there);
        // Whoever opens the NIC has the lock.
        place.try_lock().map_or(true, |there| is_open(&there)) || Arc::strong_count(place) > 1
    });
    places.entry(key).or_default().clone()
}
