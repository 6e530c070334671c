#![no_main]

#[path = "../src/am/hello.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::am_hello(data));
