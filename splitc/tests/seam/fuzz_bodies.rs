//! The body of the fuzz target `splitc`, run briefly on inputs that are the same each time.

use doorbell_kit::{effort, try_inputs};
use doorbell_simulation::Luck;

#[path = "../../../fuzz/src/splitc.rs"]
mod body;

#[test]
fn no_message_changes_what_a_process_keeps_for_itself() {
    let mut luck = Luck::new(0x05E_1F1E5);
    let inputs = (0..effort(3000, 300_000)).map(|_| {
        let len = 1 + luck.below(2000);
        (0..len).map(|_| luck.draw() as u8).collect()
    });
    try_inputs("splitc", body::splitc, inputs);
}
