#![no_main]

#[path = "../src/job/mod.rs"]
mod job;

libfuzzer_sys::fuzz_target!(|data: &[u8]| job::card(data));
