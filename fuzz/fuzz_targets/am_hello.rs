#![no_main]

#[path = "../src/am.rs"]
mod am;

libfuzzer_sys::fuzz_target!(|data: &[u8]| am::am_hello(data));
