//! The body of the fuzz target `shm`, run briefly on inputs that are the same each time.

use doorbell_kit::{effort, try_inputs};
use doorbell_simulation::Luck;

#[path = "../../../fuzz/src/shm/mod.rs"]
mod body;

/// Messages of either kind of socket, and what is left when one is changed.
fn messages() -> Vec<Vec<u8>> {
    let lines = 256u32.to_le_bytes();
    let grant = [&[4][..], &7u128.to_le_bytes(), &64u64.to_le_bytes()].concat();
    let shares = [&[1, 1, 5][..], &9u64.to_le_bytes(), &3u64.to_le_bytes()].concat();
    let hello = [&[1, 3][..], &lines, b"job/0"].concat();
    let answer = [&[2, 0][..], &lines].concat();
    vec![hello, answer, vec![2, 5], vec![3], grant, vec![5], shares, vec![1, 2, 63]]
}

#[test]
fn nothing_that_a_peer_writes_breaks_a_link_s_other_end() {
    let mut luck = Luck::new(0x005E_ED0F);
    let mut inputs = Vec::new();
    for message in messages() {
        assert!(is_message(&message), "{message:?}");
        inputs.push(message.clone());
        inputs.extend((1..256).map(|_| changed(&message, &mut luck)));
    }
    let drawn = (0..effort(300_000, 3_000_000)).map(|number| {
        let mut input: Vec<u8> = (0..=luck.below(400)).map(|_| luck.draw() as u8).collect();
        // Long rings take longer to make.
        if number % 50 != 0 {
            input[0] &= 0x7F;
        }
        input
    });
    try_inputs("shm", body::shm, inputs.into_iter().chain(drawn));
}

/// A message of which a byte is another, and the end may be missing.
fn changed(message: &[u8], luck: &mut Luck) -> Vec<u8> {
    let mut changed = message.to_vec();
    let len = changed.len() as u64;
    changed[luck.below(len) as usize] = luck.draw() as u8;
    changed.truncate(1 + luck.below(2 * len) as usize);
    changed
}

/// Whether the body has something to read as a message in some bytes.
fn is_message(bytes: &[u8]) -> bool {
    use doorbell_transports::floor::{sharing_message_again, shm_message_again};
    shm_message_again(bytes).or_else(|| sharing_message_again(bytes)).is_some()
}
