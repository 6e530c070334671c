//! Tests of Doorbell's protocol, which are in `main.rs`.
