//! The examples run as their first lines say.

use std::process::Command;

/// What an example says.
fn said(program: &str) -> String {
    let output = Command::new(program).output().expect("the example can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("it says text")
}

#[test]
fn hyper_serves_and_asks_over_a_byte_stream() {
    let expected = "200 OK: you asked for /, with 0 bytes\n\
                    200 OK: you asked for /upload, with 1000000 bytes\n";
    assert_eq!(said(env!("CARGO_BIN_EXE_hyper")), expected);
}

#[test]
fn tonic_serves_and_calls_over_byte_streams() {
    assert_eq!(said(env!("CARGO_BIN_EXE_tonic")), "hello, neighbour\nhello, world\n");
}
