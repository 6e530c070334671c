//! Programs to start from: each file or folder beside this one is an example.
//!
//! `cargo run --release --example NAME` runs one, from the root of the repository; its first lines
//! say what it shows and what it takes. Examples that need many crates are packages of their own:
//! `kv_service`, `protobuf`, `protocols`.
