#![no_main]

#[path = "../src/messages/mod.rs"]
mod messages;

libfuzzer_sys::fuzz_target!(|data: &[u8]| messages::emp_rmpp(data));
