//! Small programs that would notice if accesses were seen in another order than the crate's
//! documentation says.

mod atomics;
mod deferred;
mod orders;
mod signals;

use doorbell_splitc::{Carrier, Config};
use doorbell_verbs::Progress;

use crate::common::{by, carriers, run};

/// Each carrier, over shared memory and over UDP, by itself and with NICs that threads of their own
/// run.
fn ways() -> Vec<(&'static str, Config)> {
    let mut ways = Vec::new();
    for device in ["shm", "udp"] {
        for &carrier in carriers(device) {
            ways.push((device, by(carrier)));
        }
    }
    let dedicated = Progress::Dedicated { core: None };
    for carrier in [Carrier::Mapped, Carrier::OneSided, Carrier::Messages] {
        ways.push(("shm", Config { progress: dedicated, ..by(carrier) }));
    }
    ways
}
