//! The wrappers, around devices.

mod faults;
mod granting;
#[path = "../../in_memory/mod.rs"]
mod in_memory;
mod nics;
mod recording;
mod telling;

use doorbell_kit::conformance;
use doorbell_kit::conformance::Subject;
use doorbell_transports::wrap::{Faults, Faulty, Recorder, Traced};

use in_memory::InMemory;

/// The worked example of the documentation.
fn example() -> Subject<InMemory> {
    Subject::joined(|| InMemory::pair().expect("two sockets"))
}

/// All wrappers around it, of which none does anything to what it carries.
type Wrapped = Traced<Recorder<Faulty<InMemory>, Vec<u8>>>;

fn wrap(device: InMemory) -> Wrapped {
    let faulty = Faulty::new(device, Faults::NONE, 1).expect("no fault at all");
    Traced::new(Recorder::new(faulty, Vec::new()).expect("memory takes all"))
}

fn wrapped() -> Subject<Wrapped> {
    Subject::joined(|| {
        let (one, other) = InMemory::pair().expect("two sockets");
        (wrap(one), wrap(other))
    })
}

conformance!(threads: example);
conformance!(threads: wrapped);
