//! Test vectors of Noise, by the project cacophony. The crate `snow` has them in its file
//! `tests/vectors/cacophony.txt`. Of each vector, this file has the handshake's messages and the
//! first message behind them, which is sealed with a key that Noise ends with.

use zeroize::Zeroizing;

use super::noise::Noise;
use crate::aead::Suite;
use crate::aead::sealer::Sealer;
use crate::error::Message;
use crate::identity::{PrivateKey, Secret, hex};
use crate::pattern::Pattern;
use crate::policy::{Security, Trust};
use crate::session::Role;
use doorbell_core::cipher::Cipher;

const PROLOGUE: &[u8] = b"John Galt";
const PSK: &[u8; 32] = b"This is my Austrian perspective!";
const PRIVATE: [&str; 2] = [
    "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
];
const EPHEMERAL: [&str; 2] = [
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
];
const PAYLOADS: [&[u8]; 4] =
    [b"Ludwig von Mises", b"Murray Rothbard", b"F. A. Hayek", b"Carl Menger"];

/// What a handshake with these keys, prologue and payloads gives.
struct Vector {
    pattern: Pattern,
    hash: &'static str,
    /// The messages of the handshake, and the first one behind them.
    messages: &'static [&'static str],
}

const VECTORS: [Vector; 3] = [
    Vector {
        pattern: Pattern::Xx,
        hash: "6c4c56cf71612f72d05ceb96c0155e6f4ea54a26b504c93de632a2db4a49d200",
        messages: &[
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c7564776967\
             20766f6e204d69736573",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088437c365eb362a1\
             c991b0557fe8a7fb187d99346765d93ec63db6c1b01504ebeec55a2298d2dbff80eff034d205\
             95153f63a196a6cead1e11b2bb13e336fa13616dd3e8b0a070c882ed3f1a78c7c06c93",
            "46c3307de83b014258717d97781c1f50936d8b7d50c0722a1739654d10392d415b670c114f79\
             b9a4f80541570f77ce88802efa4220cff733e7b5668ba38059ec904b4b8eef9448085faf51",
            "d5e83adfaac5dc324a68f1862df54549e56d209fba707205f328b2",
        ],
    },
    Vector {
        pattern: Pattern::XxPsk3,
        hash: "fc0819f08aebc23de9a783653d8d7d6395b7d243d9deec12f5d6fe2f4c206673",
        messages: &[
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944325ea7169995\
             1ece20f284b6ad9604a029eb335bf84564c308b6ade90ae45078",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432645535233ff\
             e1432564d66a85227b677ced6fc2730ae0998ff49aa1dc56b8186e31b16e416f5d9c03c71f6c\
             34fd37ec013105020070a8b00c000ce7ed56629c119795f96463274bc05519d5c24dc1",
            "adf16c5375ec4172576783fd59f2bfa5c7a320d0a13b759592e1a2ddf5524cce59ccbb92ff5d\
             321fced3bdb2840596df562c0e68aad41b090abd285f6d300130072e06964a6ba494e58d47",
            "dcdc045c8e9ec36c8ea4078552e5849f87cb9bdfbd2a4eee3baaf6",
        ],
    },
    Vector {
        pattern: Pattern::NnPsk0,
        hash: "b3e9c846d264120a4211e18307da91157a21e92e69b639c50f027f101db3e1a6",
        messages: &[
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944fda936bec35a\
             8adfdff198386f7d5475880897edaaf7495314c99095a2e4d66a",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088434cd2a371993b\
             a41ea11448024fca32766b169183c9e691a7a433279da7e729",
            "bc44da303ae0beb08075fc4eb4e58235c67c2d1f53a4f2fff0bca7",
        ],
    },
];

fn bytes32(digits: &str) -> [u8; 32] {
    *hex::decode(digits).expect("64 hexadecimal digits")
}

fn begin(pattern: Pattern, role: Role) -> Noise {
    let place = usize::from(role == Role::Acceptor);
    let key = PrivateKey::from_bytes(&bytes32(PRIVATE[place]));
    let secret = Secret::from_psk(PSK);
    let security = match pattern {
        Pattern::Xx => Security::by_key(key, Trust::Anyone),
        Pattern::XxPsk3 => Security::by_key_and_secret(key, secret, Trust::Anyone),
        Pattern::NnPsk0 => Security::by_secret(secret),
    };
    let ephemeral = bytes32(EPHEMERAL[place]);
    Noise::begin_with(&security, PROLOGUE, role, Some(&ephemeral)).expect("begins")
}

/// Reads a message whose payload has the length of a vector's payload.
fn read(noise: &mut Noise, index: usize, bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    match index {
        0 => noise.read::<16>(Message::First, bytes, len).expect("opens").to_vec(),
        1 => noise.read::<15>(Message::Second, bytes, len).expect("opens").to_vec(),
        _ => noise.read::<11>(Message::Third, bytes, len).expect("opens").to_vec(),
    }
}

#[test]
fn handshakes_with_the_keys_of_the_published_vectors_give_their_messages_and_keys() {
    for Vector { pattern, hash, messages } in VECTORS {
        let mut sides = [begin(pattern, Role::Requester), begin(pattern, Role::Acceptor)];
        let (behind, messages) = messages.split_last().expect("there are messages");
        for (index, message) in messages.iter().enumerate() {
            let [one, other] = &mut sides;
            let (from, to) = if index % 2 == 0 { (one, other) } else { (other, one) };
            let made = from.write(PAYLOADS[index]).expect("writes");
            assert_eq!(made, hex::decode_vec(message).expect("digits"), "{pattern}, {index}");
            assert_eq!(read(to, index, &made), PAYLOADS[index], "{pattern}, {index}");
        }
        let split = sides[0].split();
        for side in &mut sides {
            assert_eq!(side.hash(), bytes32(hash), "{pattern}");
            assert_eq!(side.split(), split, "{pattern}");
        }
        // The first message behind the handshake is the sender's first one, with the nonce 0.
        let key = &split[32 * (messages.len() % 2)..][..32];
        let secret = Zeroizing::new([0; 32]);
        let sealer = Sealer::from_parts(Suite::ChaCha20Poly1305, key, [0; 12], secret);
        let mut sealed = PAYLOADS[messages.len()].to_vec();
        let tag = sealer.seal(0, &[], &mut sealed);
        sealed.extend_from_slice(&tag);
        assert_eq!(sealed, hex::decode_vec(behind).expect("digits"), "{pattern}");
    }
}
