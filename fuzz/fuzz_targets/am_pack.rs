#![no_main]

#[path = "../src/am/pack.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::am_pack(data));
