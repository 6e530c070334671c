//! Tests of the suites: published vectors, packets that were changed, and keys that follow.

use doorbell_core::cipher::Cipher;
use zeroize::Zeroizing;

use super::sealer::{Sealer, cipher};
use super::*;
use crate::identity::hex;

/// Encrypts and decrypts a published vector, the nonce of which is the IV XOR the number 0.
fn check(suite: Suite, [key, nonce, clear, plain, encrypted, tag]: [&str; 6]) {
    let bytes = |text| hex::decode_vec(text).expect("hexadecimal digits");
    let nonce = bytes(nonce).try_into().expect("12 bytes");
    let sealer = Sealer::from_parts(suite, &bytes(key), nonce, Zeroizing::new([0; 32]));
    let mut buffer = bytes(plain);
    let made = sealer.seal(0, &bytes(clear), &mut buffer);
    assert_eq!(buffer, bytes(encrypted), "{suite}");
    assert_eq!(made.to_vec(), bytes(tag), "{suite}");
    buffer.extend_from_slice(&made);
    let mut opened = vec![0; bytes(plain).len()];
    assert!(sealer.open(0, &bytes(clear), &buffer, &mut opened), "{suite}");
    assert_eq!(opened, bytes(plain), "{suite}");
}

const GCM_PLAIN: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95\
    956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
const GCM_CLEAR: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

#[test]
fn aes_gcm_gives_what_the_specification_of_gcm_has_as_test_cases_4_and_16() {
    let iv = "cafebabefacedbaddecaf888";
    let key = "feffe9928665731c6d6a8f9467308308";
    let encrypted = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b2\
        5466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091";
    let tag = "5bc94fbc3221a5db94fae95ae7121a47";
    check(Suite::Aes128Gcm, [key, iv, GCM_CLEAR, GCM_PLAIN, encrypted, tag]);
    let key = [key, key].concat();
    let encrypted = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48\
        590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662";
    let tag = "76fc6ece0f4e1768cddf8853bb2d551b";
    check(Suite::Aes256Gcm, [&key, iv, GCM_CLEAR, GCM_PLAIN, encrypted, tag]);
}

#[test]
fn chacha20_poly1305_gives_what_section_2_8_2_of_rfc_8439_has() {
    let plain = "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66\
        202739393a204966204920636f756c64206f6666657220796f75206f6e6c79206f6e6520\
        74697020666f7220746865206675747572652c2073756e73637265656e20776f756c6420\
        62652069742e";
    let encrypted = "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e\
        8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c\
        9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d265\
        86cec64b6116";
    let key = "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f";
    let [nonce, clear] = ["070000004041424344454647", "50515253c0c1c2c3c4c5c6c7"];
    let tag = "1ae10b594f09e26a7e902ecbd0600691";
    check(Suite::ChaCha20Poly1305, [key, nonce, clear, plain, encrypted, tag]);
}

#[test]
fn a_packet_with_any_bit_flipped_is_refused_by_every_suite() {
    for suite in Suite::ALL {
        let cipher = cipher(suite, &[3; 32]);
        let (number, clear, plain) = (0x0123_4567_89AB_CDEF_u64, *b"header", *b"some payload");
        let mut sealed = plain.to_vec();
        let tag = cipher.seal(number, &clear, &mut sealed);
        sealed.extend_from_slice(&tag);
        let opens = |number: u64, clear: &[u8], sealed: &[u8]| {
            let mut opened = [0; 12];
            cipher.open(number, clear, sealed, &mut opened) && opened == plain
        };
        assert!(opens(number, &clear, &sealed));
        for bit in 0..64 {
            assert!(!opens(number ^ 1 << bit, &clear, &sealed), "{suite}, number, bit {bit}");
        }
        for bit in 0..clear.len() * 8 {
            let mut flipped = clear;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(number, &flipped, &sealed), "{suite}, clear, bit {bit}");
        }
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(number, &clear, &flipped), "{suite}, sealed, bit {bit}");
        }
    }
}

#[test]
fn a_sealed_packet_of_the_wrong_length_is_refused() {
    let cipher = cipher(Suite::Aes256Gcm, &[3; 32]);
    let mut sealed = b"four".to_vec();
    let tag = cipher.seal(0, &[], &mut sealed);
    sealed.extend_from_slice(&tag);
    for len in 0..sealed.len() {
        for room in [0, 3, 4, 5, 40] {
            assert!(!cipher.open(0, &[], &sealed[..len], &mut vec![0; room]), "{len}, {room}");
        }
    }
    assert!(!cipher.open(0, &[], &sealed, &mut [0; 5]));
    assert!(cipher.open(0, &[], &sealed, &mut [0; 4]));
}

#[test]
fn both_sides_go_on_to_the_same_next_key_and_the_key_before_does_not_open_it() {
    for suite in Suite::ALL {
        let (mut one, mut other) = (cipher(suite, &[3; 32]), cipher(suite, &[3; 32]));
        for _ in 0..3 {
            let before = other.clone();
            (one, other) = (one.next(), other.next());
            let mut sealed = b"four".to_vec();
            let tag = one.seal(9, b"clear", &mut sealed);
            sealed.extend_from_slice(&tag);
            assert!(other.open(9, b"clear", &sealed, &mut [0; 4]));
            assert!(!before.open(9, b"clear", &sealed, &mut [0; 4]));
        }
    }
}

#[test]
fn a_secret_gives_different_keys_to_different_suites() {
    let mut seen = Vec::new();
    for suite in Suite::ALL {
        let mut zeros = [0; 16];
        cipher(suite, &[3; 32]).seal(0, &[], &mut zeros);
        assert!(!seen.contains(&zeros), "{suite}");
        seen.push(zeros);
    }
}

#[test]
fn the_debug_text_of_a_cipher_has_the_suite_and_no_key() {
    let text = format!("{:?}", cipher(Suite::Aes128Gcm, &[3; 32]));
    assert_eq!(text, "Sealer { suite: Aes128Gcm, .. }");
}

#[test]
fn a_suite_that_is_fast_on_every_processor_is_always_among_those_to_use() {
    assert!(Suite::fast_here().contains(&Suite::ChaCha20Poly1305));
}
