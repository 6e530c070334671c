#![no_main]

#[path = "../src/shm/mod.rs"]
mod shm;

libfuzzer_sys::fuzz_target!(|data: &[u8]| shm::shm(data));
