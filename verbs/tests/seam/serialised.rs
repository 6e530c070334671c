//! Keys of memory in whatever form a program passes them on.

use doorbell_verbs::{RemoteAddr, RemoteMemory, Rkey};

/// Also numbers that a format which counts in floating point would round.
#[test]
fn a_key_that_was_serialised_names_the_same_memory() {
    for (address, rkey, len) in
        [(0, 0, 0), (0x7f00_1234_5000, 0x8c0f_fee1, 4096), (u64::MAX, u32::MAX, u64::MAX - 1)]
    {
        let memory = RemoteMemory::new(RemoteAddr(address), Rkey(rkey), len);
        let text = serde_json::to_string(&memory).expect("it is plain numbers");
        let again: RemoteMemory = serde_json::from_str(&text).expect("it was just written");
        assert_eq!((again, again.address().0, again.rkey().0), (memory, address, rkey), "{text}");
        assert_eq!(again.len(), len, "{text}");
    }
}

/// What programs of other versions have written is read.
#[test]
fn the_fields_of_a_key_that_is_serialised_keep_their_names() {
    let text = r#"{"address":139638282145792,"rkey":2349858529,"len":4096}"#;
    let memory: RemoteMemory = serde_json::from_str(text).expect("it is a key");
    assert_eq!(memory.to_string(), "7f0012345000+4096@8c0ffee1");
    assert_eq!(serde_json::to_string(&memory).expect("it is plain numbers"), text);
    let partial = r#"{"address":1,"len":4096}"#;
    let why = serde_json::from_str::<RemoteMemory>(partial).expect_err("it has no key");
    assert!(why.to_string().contains("missing field `rkey`"), "{why}");
}
