#![no_main]

#[path = "../src/am/group.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::am_group(data));
