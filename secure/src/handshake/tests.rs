//! Tests of whole handshakes: those that succeed, and those that somebody has tampered with.

use doorbell_core::cipher::Cipher;

use super::noise::Noise;
use super::*;
use crate::aead::Suite;
use crate::error::{HandshakeError, Message, Refused};
use crate::identity::{Allowed, FirstUse, PrivateKey, PublicKey, Secret};
use crate::pattern::{DIGEST, MOST_PRIVATE, Pattern, THIRD_PAYLOAD};
use crate::policy::{Security, Trust};
use crate::session::{PeerIdentity, Role, SessionKeys};

const PATTERNS: [Pattern; 3] = [Pattern::Xx, Pattern::XxPsk3, Pattern::NnPsk0];
const PROLOGUE: &[u8] = b"request";
const TERMS: &[u8] = b"reply";
const PRIVATE: &[u8] = b"private data";

fn key(byte: u8) -> PrivateKey {
    PrivateKey::from_bytes(&[byte; 32])
}

fn public(byte: u8) -> PublicKey {
    key(byte).public()
}

fn allow(byte: u8) -> Trust {
    let mut allowed = Allowed::new();
    allowed.insert(public(byte), None);
    Trust::Allowed(allowed)
}

/// Returns what a process demands that has the private key `own` and the secret given.
fn security(pattern: Pattern, own: u8, trust: Trust, secret: &str) -> Security {
    let secret = || Secret::new(secret.as_bytes()).expect("16 bytes");
    match pattern {
        Pattern::Xx => Security::by_key(key(own), trust),
        Pattern::XxPsk3 => Security::by_key_and_secret(key(own), secret(), trust),
        Pattern::NnPsk0 => Security::by_secret(secret()),
    }
}

fn requester(pattern: Pattern) -> Security {
    security(pattern, 1, allow(2), "0123456789abcdef")
}

fn acceptor(pattern: Pattern) -> Security {
    security(pattern, 2, allow(1), "0123456789abcdef")
}

/// What somebody between the two hosts does with a message.
type Tamper<'t> = &'t dyn Fn(Message, &mut Vec<u8>);

/// The end of a handshake at both sides.
#[derive(Debug)]
struct Ended {
    requester: SessionKeys,
    acceptor: Established,
}

/// Runs a handshake, and returns the first error of either side.
fn run(one: &Security, other: &Security, tamper: Tamper<'_>) -> Result<Ended, Refused> {
    let (asking, mut first) = Requester::begin(one, PROLOGUE)?;
    assert_eq!(first.len(), one.pattern().first_len());
    tamper(Message::First, &mut first);
    let (accepting, mut second) = Acceptor::answer(other, PROLOGUE, &first, TERMS)?;
    assert_eq!(second.len(), other.pattern().second_len());
    tamper(Message::Second, &mut second);
    let confirming = asking.second(&second, TERMS, "acceptor")?;
    let (mut third, keys) = confirming.third(PRIVATE)?;
    assert_eq!(third.len(), one.pattern().third_len());
    tamper(Message::Third, &mut third);
    Ok(Ended { requester: keys, acceptor: accepting.third(&third, "requester")? })
}

fn untouched(_: Message, _: &mut Vec<u8>) {}

/// Checks that what one cipher seals, the other opens, and that the first does not.
fn check_opens(sealing: &dyn Cipher, opening: &dyn Cipher) {
    let mut sealed = b"packet".to_vec();
    let tag = sealing.seal(5, b"header", &mut sealed);
    sealed.extend_from_slice(&tag);
    let mut opened = [0; 6];
    assert!(opening.open(5, b"header", &sealed, &mut opened));
    assert_eq!(&opened, b"packet");
}

#[test]
fn every_pattern_ends_with_keys_that_open_what_the_other_side_seals() {
    for pattern in PATTERNS {
        for suite in Suite::ALL {
            let ended = run(&requester(pattern), &acceptor(pattern), &untouched).expect("ends");
            let Established { mut keys, peer, private } = ended.acceptor;
            let expected = if pattern == Pattern::NnPsk0 {
                PeerIdentity::Secret
            } else {
                PeerIdentity::Key(public(1))
            };
            assert_eq!((peer, private.as_slice()), (expected, PRIVATE));
            let answer = keys.control().seal(1, b"welcome");
            let (one_sends, one_receives, mut one) = ended.requester.into_ciphers(suite);
            let (other_sends, other_receives, other) = keys.into_ciphers(suite);
            check_opens(&*one_sends, &*other_receives);
            check_opens(&*other_sends, &*one_receives);
            assert_eq!(one.open(1, &answer).as_deref(), Some(&b"welcome"[..]));
            assert_eq!(other.open(2, &one.seal(2, b"bye")).as_deref(), Some(&b"bye"[..]));
            let mut sealed = vec![0; 16];
            let tag = one_sends.seal(0, &[], &mut sealed);
            sealed.extend_from_slice(&tag);
            assert!(!one_receives.open(0, &[], &sealed, &mut [0; 16]), "directions differ");
        }
    }
}

#[test]
fn messages_may_be_followed_by_padding_and_have_the_lengths_that_are_documented() {
    let lens = PATTERNS.map(|p| [p.first_len(), p.second_len(), p.third_len()]);
    assert_eq!(lens, [[32, 128, 157], [48, 128, 157], [48, 80, 119]]);
    for pattern in PATTERNS {
        let pad = |_: Message, bytes: &mut Vec<u8>| bytes.resize(232, 0);
        assert!(run(&requester(pattern), &acceptor(pattern), &pad).is_ok(), "{pattern}");
    }
}

/// Returns a copy of some bytes with one bit flipped.
fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Checks that a message opens, and that it does not with any of its first bits flipped. Reading
/// the message must not depend on a key that reading it has replaced: the library does not restore
/// the key when a message does not open.
fn check_bits<const N: usize>(noise: &mut Noise, message: Message, bytes: &[u8], bits: usize) {
    for bit in 0..bits {
        let read = noise.read::<N>(message, &flipped(bytes, bit), bytes.len());
        assert!(read.is_err(), "{}, {message}, bit {bit}", noise.pattern());
    }
    assert!(noise.read::<N>(message, bytes, bytes.len()).is_ok(), "{message}");
}

#[test]
fn a_message_with_any_of_its_authenticated_bits_flipped_does_not_open() {
    for pattern in PATTERNS {
        let begin = |security: &Security, role| Noise::begin(security, PROLOGUE, role);
        let mut one = begin(&requester(pattern), Role::Requester).expect("begins");
        let mut other = begin(&acceptor(pattern), Role::Acceptor).expect("begins");
        let first = one.write(&[]).expect("writes");
        // In the first message of `XX` nothing is authenticated yet.
        let bits = if pattern == Pattern::Xx { 0 } else { first.len() * 8 };
        check_bits::<0>(&mut other, Message::First, &first, bits);
        let second = other.write(&digest(TERMS)).expect("writes");
        check_bits::<DIGEST>(&mut one, Message::Second, &second, second.len() * 8);
        if pattern.has_keys() {
            let third = one.write(&[0; THIRD_PAYLOAD]).expect("writes");
            check_bits::<THIRD_PAYLOAD>(&mut other, Message::Third, &third, 48 * 8);
        }
    }
}

/// Checks that a handshake fails with one bit of one of its messages flipped.
fn check_fails(pattern: Pattern, message: Message, bit: usize) {
    let flip = |now: Message, bytes: &mut Vec<u8>| {
        if now == message {
            *bytes = flipped(bytes, bit);
        }
    };
    let Err(refused) = run(&requester(pattern), &acceptor(pattern), &flip) else {
        panic!("{pattern}, {message}, bit {bit}: the handshake succeeds");
    };
    assert!(refused.keys.is_none(), "{pattern}, {message}, bit {bit}");
    let is_expected =
        matches!(refused.why, HandshakeError::Altered { .. } | HandshakeError::WrongSecret { .. });
    assert!(is_expected, "{pattern}, {message}, bit {bit}: {refused}");
}

#[test]
fn a_handshake_with_a_bit_of_any_message_flipped_fails_before_its_end() {
    for pattern in PATTERNS {
        for byte in 0..32 {
            check_fails(pattern, Message::First, byte * 8 + byte % 8);
        }
        // X25519 ignores the last bit of a public key, and the hash of the handshake does not.
        check_fails(pattern, Message::First, 255);
        check_fails(pattern, Message::Second, 255);
        for byte in (0..pattern.second_len()).step_by(9) {
            check_fails(pattern, Message::Second, byte * 8 + byte % 8);
        }
        for byte in 0..pattern.third_len() {
            check_fails(pattern, Message::Third, byte * 8 + byte % 8);
        }
    }
}

#[test]
fn bytes_that_are_no_message_are_errors_at_every_step() {
    for pattern in PATTERNS {
        for (byte, len) in [(0, 0), (0, 600), (0xFF, 600), (9, 70_000)] {
            for message in [Message::First, Message::Second, Message::Third] {
                let replace = |now: Message, bytes: &mut Vec<u8>| {
                    if now == message {
                        *bytes = vec![byte; len];
                    }
                };
                let ended = run(&requester(pattern), &acceptor(pattern), &replace);
                assert!(ended.is_err(), "{pattern}, {message}, {len} times {byte}");
            }
        }
    }
}

#[test]
fn a_message_that_is_cut_is_an_error_that_says_how_long_it_should_be() {
    for pattern in PATTERNS {
        for message in [Message::First, Message::Second, Message::Third] {
            for kept in [0, 1, 31] {
                let cut = |now: Message, bytes: &mut Vec<u8>| {
                    if now == message {
                        bytes.truncate(kept);
                    }
                };
                let why =
                    run(&requester(pattern), &acceptor(pattern), &cut).expect_err("short").why;
                let HandshakeError::Short { message: named, found, .. } = why else {
                    panic!("{pattern}, {message}: {why}");
                };
                assert_eq!((named, found), (message, kept));
            }
        }
    }
}

#[test]
fn another_secret_is_told_from_a_changed_message() {
    let wrong = "fedcba9876543210";
    let one = security(Pattern::NnPsk0, 1, Trust::Anyone, wrong);
    let why = run(&one, &acceptor(Pattern::NnPsk0), &untouched).expect_err("another secret").why;
    assert!(matches!(why, HandshakeError::WrongSecret { message: Message::First }), "{why}");
    let one = security(Pattern::XxPsk3, 1, allow(2), wrong);
    let refused = run(&one, &acceptor(Pattern::XxPsk3), &untouched).expect_err("another secret");
    let why = refused.why;
    assert!(matches!(why, HandshakeError::WrongSecret { message: Message::Third }), "{why}");
    assert!(refused.keys.is_none(), "without the same secret there are no common keys");
    assert!(why.to_string().contains("Compare the files"), "{why}");
}

#[test]
fn a_prologue_that_differs_is_refused_by_every_pattern() {
    for pattern in PATTERNS {
        let (asking, first) = Requester::begin(&requester(pattern), b"reques7").expect("begins");
        let answered = Acceptor::answer(&acceptor(pattern), PROLOGUE, &first, TERMS);
        let why = match answered {
            Err(why) => why,
            Ok((_, second)) => asking.second(&second, TERMS, "x").expect_err("another prologue"),
        };
        assert!(
            matches!(why, HandshakeError::Altered { .. } | HandshakeError::WrongSecret { .. }),
            "{why}"
        );
    }
}

#[test]
fn terms_that_differ_are_an_error_of_their_own() {
    for pattern in PATTERNS {
        let (asking, first) = Requester::begin(&requester(pattern), PROLOGUE).expect("begins");
        let answered = Acceptor::answer(&acceptor(pattern), PROLOGUE, &first, TERMS);
        let (_, second) = answered.expect("answers");
        let why = asking.second(&second, b"rep1y", "x").expect_err("other terms");
        assert!(matches!(why, HandshakeError::TermsChanged), "{why}");
    }
}

#[test]
fn the_acceptor_refuses_an_unknown_key_with_a_sealed_answer_that_the_requester_can_open() {
    for pattern in [Pattern::Xx, Pattern::XxPsk3] {
        let other = security(pattern, 2, allow(9), "0123456789abcdef");
        let (asking, first) = Requester::begin(&requester(pattern), PROLOGUE).expect("begins");
        let (accepting, second) =
            Acceptor::answer(&other, PROLOGUE, &first, TERMS).expect("answers");
        let confirming = asking.second(&second, TERMS, "acceptor").expect("its key is allowed");
        assert_eq!(confirming.peer(), PeerIdentity::Key(public(2)));
        let (third, keys) = confirming.third(PRIVATE).expect("short enough");
        let refused = accepting.third(&third, "10.0.0.7").expect_err("an unknown key");
        let text = refused.to_string();
        assert!(text.contains("10.0.0.7") && text.contains(&public(1).to_string()), "{text}");
        assert!(matches!(refused.why, HandshakeError::UnknownKey { key, .. } if key == public(1)));
        let mut sealing = refused.keys.expect("the peer has proved its key").into_control();
        let message = sealing.seal(3, b"refused");
        assert_eq!(keys.into_control().open(3, &message).as_deref(), Some(&b"refused"[..]));
    }
}

#[test]
fn the_requester_refuses_an_unknown_key_before_it_says_anything_about_itself() {
    for pattern in [Pattern::Xx, Pattern::XxPsk3] {
        let one = security(pattern, 1, allow(9), "0123456789abcdef");
        let why = run(&one, &acceptor(pattern), &untouched).expect_err("an unknown key").why;
        let HandshakeError::UnknownKey { from, key, .. } = why else { panic!("{why}") };
        assert_eq!((from.as_str(), key), ("acceptor", public(2)));
    }
}

#[test]
fn a_key_is_trusted_on_first_use_and_another_one_of_the_same_address_is_refused() {
    let memory = FirstUse::in_memory();
    let other = security(Pattern::Xx, 2, Trust::FirstUse(memory.clone()), "");
    for _ in 0..2 {
        let one = security(Pattern::Xx, 1, Trust::Anyone, "");
        run(&one, &other, &untouched).expect("the same key as at first");
    }
    assert_eq!(memory.key("requester"), Some(public(1)));
    let one = security(Pattern::Xx, 7, Trust::Anyone, "");
    let refused = run(&one, &other, &untouched).expect_err("another key");
    let HandshakeError::ChangedKey { known, key, .. } = &refused.why else { panic!("{refused}") };
    assert_eq!((*known, *key), (public(1), public(7)));
    assert!(refused.keys.is_some());
}

#[test]
fn the_requester_remembers_a_key_when_it_is_told_to() {
    let memory = FirstUse::in_memory();
    let one = security(Pattern::Xx, 1, Trust::FirstUse(memory.clone()), "");
    let by = |own: u8| security(Pattern::Xx, own, Trust::Anyone, "");
    run(&one, &by(2), &untouched).expect("a new address");
    assert_eq!(memory.key("acceptor"), None);
    one.remember(&PeerIdentity::Key(public(2)), "acceptor").expect("remembered");
    run(&one, &by(2), &untouched).expect("the same key");
    let why = run(&one, &by(3), &untouched).expect_err("another key").why;
    assert!(matches!(why, HandshakeError::ChangedKey { .. }), "{why}");
    assert!(one.remember(&PeerIdentity::Key(public(3)), "acceptor").is_err());
}

#[test]
fn private_data_of_every_length_arrive_and_longer_ones_are_refused() {
    for pattern in PATTERNS {
        for len in [0, 1, MOST_PRIVATE, MOST_PRIVATE + 1, 300] {
            let (asking, first) = Requester::begin(&requester(pattern), PROLOGUE).expect("begins");
            let answered = Acceptor::answer(&acceptor(pattern), PROLOGUE, &first, TERMS);
            let (accepting, second) = answered.expect("answers");
            let confirming = asking.second(&second, TERMS, "acceptor").expect("allowed");
            let private = vec![0xFF; len];
            match confirming.third(&private) {
                Ok((third, _)) => {
                    let established = accepting.third(&third, "requester").expect("allowed");
                    assert_eq!(established.private, private);
                    assert!(len <= MOST_PRIVATE);
                }
                Err(why) => {
                    assert!(
                        matches!(why, HandshakeError::PrivateTooLong { found, .. } if found == len)
                    );
                    assert!(len > MOST_PRIVATE);
                }
            }
        }
    }
}

#[test]
fn messages_of_two_patterns_do_not_go_together() {
    for one in PATTERNS {
        for other in PATTERNS.into_iter().filter(|&other| other != one) {
            assert!(run_unequal(one, other).is_none(), "{one} with {other}");
        }
    }
}

/// Runs a handshake of two sides with different patterns, as far as it goes.
fn run_unequal(one: Pattern, other: Pattern) -> Option<Established> {
    let (asking, mut first) = Requester::begin(&requester(one), PROLOGUE).ok()?;
    first.resize(232, 0);
    let (accepting, mut second) =
        Acceptor::answer(&acceptor(other), PROLOGUE, &first, TERMS).ok()?;
    second.resize(232, 0);
    let (mut third, _) = asking.second(&second, TERMS, "x").ok()?.third(PRIVATE).ok()?;
    third.resize(232, 0);
    accepting.third(&third, "x").ok()
}

#[test]
fn both_sides_log_the_same_secrets_for_a_capture() {
    let ended = run(&requester(Pattern::Xx), &acceptor(Pattern::Xx), &untouched).expect("ends");
    let one = ended.requester.log_line("connection 7");
    assert_eq!(*one, *ended.acceptor.keys.log_line("connection 7"));
    let lines: Vec<_> = one.lines().collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!((words[1], words[2].len()), ("connection_7", 64), "{line}");
    }
    let debug = format!("{:?} {:?}", ended.requester, ended.acceptor);
    assert!(!debug.contains("secret") && debug.len() < 200, "{debug}");
}
