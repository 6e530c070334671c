#![no_main]

#[path = "../src/byte_stream/mod.rs"]
mod byte_stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| byte_stream::byte_stream(data));
