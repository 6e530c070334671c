//! The statistics of a NIC, and their publication as metrics.

use doorbell_core::{cm, nic};

/// What a NIC has counted since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Statistics {
    /// Counters of packets and requests: dropped, repeated, retried, and why.
    pub nic: nic::Counters,
    /// Counters of the device's frames.
    pub device: doorbell_transports::Statistics,
    /// Counters of the connection manager.
    pub connections: cm::Counters,
    /// The number of objects of each kind.
    pub objects: nic::Objects,
}

impl Statistics {
    /// Sets the counters and gauges of the [`metrics`](https://docs.rs/metrics) recorder that the
    /// program has installed, with `nic` as their label. A program may call this as often as it
    /// likes.
    ///
    /// | | of |
    /// |---|---|
    /// | `doorbell_nic_…` | packets and requests, by the names of [`nic::Counters`] |
    /// | `doorbell_device_…` | frames, by those of [`doorbell_transports::Statistics`] |
    /// | `doorbell_connections_…` | connections, by those of [`cm::Counters`] |
    /// | `doorbell_queue_pairs`, `doorbell_registrations`, … | objects that there are |
    pub fn publish(&self, nic: &str) {
        count(nic, "nic", self.nic.each());
        count(nic, "device", self.device.each());
        count(nic, "connections", self.connections.each());
        for (name, count) in self.objects.each() {
            metrics::gauge!(format!("doorbell_{name}"), "nic" => nic.to_owned()).set(count as f64);
        }
    }
}

/// Sets the counters of one kind, each under its own name.
fn count(nic: &str, kind: &str, counters: impl Iterator<Item = (&'static str, u64)>) {
    for (name, value) in counters {
        metrics::counter!(format!("doorbell_{kind}_{name}"), "nic" => nic.to_owned())
            .absolute(value);
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

    impl Kept {
        fn place(&self, key: &Key) -> Arc<AtomicU64> {
            self.0.lock().unwrap().entry(key.to_string()).or_default().clone()
        }
    }

    impl Recorder for Kept {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.place(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.place(key))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn every_counter_is_published_under_its_name_and_with_its_nic() {
        let mut counted = Statistics {
            nic: nic::Counters::default(),
            device: doorbell_transports::Statistics::default(),
            connections: cm::Counters::default(),
            objects: nic::Objects::default(),
        };
        (counted.nic.received, counted.device.sleeps) = (7, 8);
        (counted.connections.established, counted.objects.hosts) = (9, 3);
        let kept = Kept::default();
        metrics::with_local_recorder(&kept, || counted.publish("shm:here"));
        let kept = kept.0.into_inner().unwrap();
        let found = |name: &str| {
            let mut found = kept.iter().filter(|(key, _)| key.contains(&format!("({name},")));
            let (key, value) = found.next().expect(name);
            assert!(key.contains("shm:here"), "{key}");
            value.load(Ordering::Relaxed)
        };
        assert_eq!(found("doorbell_nic_received"), 7);
        assert_eq!(found("doorbell_device_sleeps"), 8);
        assert_eq!(found("doorbell_connections_established"), 9);
        assert_eq!(f64::from_bits(found("doorbell_hosts")), 3.0);
        let nic = size_of::<nic::Counters>() + size_of::<cm::Counters>();
        let all = (nic + size_of::<doorbell_transports::Statistics>()) / 8 + 6;
        assert_eq!(kept.len(), all, "a counter without a name");
    }
}
