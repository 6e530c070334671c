//! What the name of an endpoint of frames says: which queue pair takes frames, and by which key.
//!
//! The number of the name's service is the number of the queue pair, in 24 bits, and below it the
//! key that lets frames in. Who has the name can send messages to the endpoint. Endpoints know each
//! other by that number, which is not guessed, and not met twice; and by it, as a service, they
//! take connections of peers that place frames.

use doorbell_verbs::{Name, Qkey, Qpn};

/// Returns the name of the endpoint of frames whose queue pair has this number and key.
pub fn named(address: String, qpn: Qpn, key: Qkey) -> Name {
    Name::at(address, u64::from(qpn.get()) << 32 | u64::from(key.0))
}

/// Returns the number by which frames name the endpoint of this name as their sender.
pub fn identity(name: &Name) -> u64 {
    name.service().0
}

/// Returns the queue pair that takes frames for the endpoint of this name, and the key that lets
/// them in. Names of no endpoint of frames have a number there that no queue pair has.
pub fn queue_pair(name: &Name) -> Option<(Qpn, Qkey)> {
    let [number, key] = [32, 0].map(|shift| (identity(name) >> shift) as u32);
    (number >> 24 == 0).then(|| (Qpn::new(number), Qkey(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_queue_pair_and_the_key() {
        let (qpn, key) = (Qpn::new(0x2a), Qkey(0x7f00_1234));
        let name = named("udp:[::1]:4791".into(), qpn, key);
        assert_eq!(name.to_string(), "udp:[::1]:4791#0000002a7f001234");
        assert_eq!(queue_pair(&name), Some((qpn, key)));
        assert_eq!(queue_pair(&Name::at("shm:a", 1 << 56)), None);
    }
}
