//! Each protocol runs over each carrier, between two processes.

use std::process::Command;

/// Runs a protocol, and checks what its client says in the end.
fn runs(protocol: &str, over: &str, text: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_protocols"));
    let output = command.args(["--over", over, protocol]).output().expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let said = String::from_utf8(output.stdout).expect("it says text");
    assert_eq!(said, format!("{protocol}: {text}\n"));
}

macro_rules! over_each_carrier {
    ($($protocol:ident $text:literal)+) => {$(
        mod $protocol {
            #[test]
            fn runs_over_udp() {
                super::runs(stringify!($protocol), "udp", $text);
            }

            #[test]
            fn runs_over_shared_memory() {
                super::runs(stringify!($protocol), "shm", $text);
            }

            #[test]
            fn runs_over_tcp() {
                super::runs(stringify!($protocol), "tcp", $text);
            }
        }
    )+};
}

over_each_carrier! {
    http1 "3 requests, with bodies of up to 3000000 bytes, came back"
    http2 "100 requests at once, one of them of 3000000 bytes, came back"
    grpc "1000 calls were answered"
    websocket "10000 messages at once, and one of 3000000 bytes, came back"
    tls "5000000 bytes came back by TLSv1_3"
    redis "20000 commands in one pipeline, and a value of 3000000 bytes, came back"
    mqtt "1000 messages at once, and one of 1000000 bytes, came back by the broker"
}

#[test]
fn a_protocol_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_protocols"));
    let output = command.arg("gopher").output().expect("it can be started");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("websocket"));
}
