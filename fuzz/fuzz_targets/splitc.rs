#![no_main]

#[path = "../src/splitc.rs"]
mod splitc;

libfuzzer_sys::fuzz_target!(|data: &[u8]| splitc::splitc(data));
