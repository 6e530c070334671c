//! Tests of keys, secrets, and the files that have them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

/// A folder that is removed with all its files at the end of a test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file with the mode given, and returns its path.
    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
        path
    }
}

fn public(byte: u8) -> PublicKey {
    PrivateKey::from_bytes(&[byte; 32]).public()
}

#[test]
fn a_private_key_is_the_same_after_it_was_saved_and_loaded() {
    let folder = Folder::new();
    let path = folder.path("key");
    let key = PrivateKey::generate().expect("random numbers");
    key.save(&path).expect("saved");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o7777, 0o600);
    let loaded = PrivateKey::load(&path).expect("loaded");
    assert_eq!(loaded.public(), key.public());
    assert_eq!(loaded.bytes(), key.bytes());
    assert_ne!(PrivateKey::generate().expect("random numbers").public(), key.public());
}

#[test]
fn the_public_keys_of_the_cacophony_vectors_follow_from_their_private_keys() {
    let pairs = [
        (
            "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
            "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a",
        ),
        (
            "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
            "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
        ),
    ];
    for (private, public) in pairs {
        let private = hex::decode(private).expect("digits");
        assert_eq!(PrivateKey::from_bytes(&private).public().to_string(), public);
    }
}

#[test]
fn a_private_key_never_overwrites_a_file() {
    let folder = Folder::new();
    let path = folder.file("key", "precious", 0o600);
    let why = PrivateKey::from_bytes(&[1; 32]).save(&path).expect_err("the file exists");
    assert!(why.to_string().contains("there is a file already"), "{why}");
    assert_eq!(fs::read_to_string(&path).expect("there"), "precious");
}

#[test]
fn secrets_that_others_may_use_are_refused_with_the_command_that_helps() {
    let folder = Folder::new();
    for mode in [0o640, 0o604, 0o620, 0o644, 0o666] {
        let path = folder.file("file", "0123456789abcdef", mode);
        let key = PrivateKey::load(&path).expect_err("open to others").to_string();
        let secret = Secret::load(&path).expect_err("open to others").to_string();
        for text in [key, secret] {
            assert!(text.contains(&format!("mode {mode:04o}")), "{text}");
            assert!(text.contains(&format!("`chmod 600 {}`", path.display())), "{text}");
        }
    }
}

#[test]
fn a_file_without_a_private_key_is_refused_and_not_shown() {
    let folder = Folder::new();
    let digits = "ab".repeat(32);
    let bad = [
        String::new(),
        digits.clone(),
        format!("doorbell-private-key-2 {digits}"),
        format!("doorbell-private-key-1 {digits} more"),
        format!("doorbell-private-key-1 {}", &digits[2..]),
        format!("doorbell-private-key-1 {}g", &digits[1..]),
        format!("doorbell-private-key-1 +{}", &digits[1..]),
    ];
    for text in bad {
        let path = folder.file("key", &text, 0o600);
        let why = PrivateKey::load(&path).expect_err("no private key").to_string();
        assert!(why.contains("has no private key") && !why.contains("abab"), "{why}");
    }
    let path = folder.file("key", &digits.repeat(9), 0o600);
    let why = PrivateKey::load(&path).expect_err("too long").to_string();
    assert!(why.contains("more than 256 bytes"), "{why}");
}

#[test]
fn a_public_key_is_read_back_from_its_text() {
    let key = public(1);
    assert_eq!(key.to_string().parse::<PublicKey>().expect("its own text"), key);
    assert_eq!(format!("{key:?}"), key.to_string());
    assert_eq!(key.to_string().len(), 64);
    let why = "ä\n".repeat(32).parse::<PublicKey>().expect_err("no digits").to_string();
    assert!(why.contains("64 hexadecimal digits") && !why.contains('\n'), "{why}");
}

#[test]
fn a_secret_is_refused_when_it_is_short_and_trimmed_by_one_line_break() {
    let why = Secret::new(b"fifteen letters").expect_err("15 bytes").to_string();
    assert!(why.contains("15 bytes") && why.contains("/dev/urandom"), "{why}");
    assert!(!why.contains("letters"), "{why}");
    let folder = Folder::new();
    let given = Secret::new(b"0123456789abcdef").expect("16 bytes");
    for text in ["0123456789abcdef", "0123456789abcdef\n", "0123456789abcdef\r\n"] {
        let loaded = Secret::load(folder.file("secret", text, 0o600)).expect("16 bytes");
        assert_eq!(loaded.psk(), given.psk());
    }
    let loaded = Secret::load(folder.file("secret", "0123456789abcdef\n\n", 0o400)).expect("17");
    assert_ne!(loaded.psk(), given.psk());
}

#[test]
fn no_debug_text_shows_a_private_key_or_a_secret() {
    let key = format!("{:?}", PrivateKey::from_bytes(&[0xAB; 32]));
    assert!(key.contains(&public(0xAB).to_string()) && !key.contains("abab"), "{key}");
    let secret = Secret::new(&[0xAB; 32]).expect("32 bytes");
    assert_eq!(format!("{secret:?}"), "Secret { .. }");
}

#[test]
fn allowed_keys_are_read_with_their_names() {
    let folder = Folder::new();
    let text = format!("# comment\n\n{}\n  {} store 1 \r\n", public(1), public(2));
    let allowed = Allowed::load(folder.file("allowed", &text, 0o644)).expect("valid");
    assert_eq!(allowed.len(), 2);
    assert!(allowed.contains(&public(1)) && allowed.contains(&public(2)));
    assert_eq!((allowed.name(&public(1)), allowed.name(&public(2))), (None, Some("store 1")));
    assert!(!allowed.contains(&public(3)));
}

#[test]
fn a_line_that_is_no_allowed_key_is_named_with_its_file() {
    let folder = Folder::new();
    let path = folder.file("allowed", &format!("{}\nstore-2\n", public(1)), 0o600);
    let why = Allowed::load(&path).expect_err("no key").to_string();
    assert!(why.starts_with(&format!("line 2 of {}: `store-2`", path.display())), "{why}");
    let path = folder.file("allowed", "", 0o666);
    let why = Allowed::load(&path).expect_err("writable by others").to_string();
    assert!(why.contains("0666") && why.contains("chmod go-w"), "{why}");
}

#[test]
fn the_key_that_an_address_first_had_stays_in_memory_and_in_the_file() {
    let folder = Folder::new();
    let path = folder.path("known");
    for memory in [FirstUse::in_memory(), FirstUse::in_file(&path).expect("new")] {
        assert_eq!(memory.key("10.0.0.7"), None);
        assert_eq!(memory.remember("10.0.0.7", public(1)).expect("new"), public(1));
        assert_eq!(memory.clone().remember("10.0.0.7", public(2)).expect("known"), public(1));
        assert_eq!(memory.remember("10.0.0.8", public(2)).expect("new"), public(2));
    }
    let again = FirstUse::in_file(&path).expect("its own file");
    assert_eq!(again.key("10.0.0.7"), Some(public(1)));
    assert_eq!(again.key("10.0.0.8"), Some(public(2)));
}

#[test]
fn an_address_that_would_break_the_file_is_refused() {
    let memory = FirstUse::in_memory();
    for address in ["", "#1", "a b", "a\nb", "a\u{7f}", &"a".repeat(257)] {
        let why = memory.remember(address, public(1)).expect_err("no word").to_string();
        assert!(why.contains("without white space") && !why.contains('\n'), "{why}");
    }
    let folder = Folder::new();
    let path = folder.file("known", "# fine\n10.0.0.7\n", 0o600);
    let why = FirstUse::in_file(&path).expect_err("no key").to_string();
    assert!(why.starts_with(&format!("line 2 of {}", path.display())), "{why}");
}

#[test]
fn a_remembered_key_that_can_not_be_written_is_an_error_and_stays_new() {
    let folder = Folder::new();
    let memory = FirstUse::in_file(folder.path("no/such/folder")).expect("may come later");
    let why = memory.remember("10.0.0.7", public(1)).expect_err("no folder").to_string();
    assert!(why.contains("writing the list of remembered keys"), "{why}");
    assert_eq!(memory.key("10.0.0.7"), None);
}
