//! The example runs as its first lines say, in one process and in two.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SAID: &str = "Oslo is at 59.91, 10.75\n\
                    Lima is north of -20\n\
                    Oslo is north of -20\n\
                    NotFound: the atlas has no place `Atlantis`\n";

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_protobuf"))
}

/// What the example says with some arguments, to its end.
fn said(arguments: &[&str]) -> String {
    let output = program().args(arguments).output().expect("the example can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("it says text")
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_serves_and_calls_in_one_process() {
    assert_eq!(said(&[]), SAID);
}

#[test]
fn the_example_serves_in_one_process_and_calls_from_another() {
    let serve = program().args(["serve", "udp:127.0.0.1:0"]).stdout(Stdio::piped()).spawn();
    let mut server = Running(serve.expect("the example can be started"));
    let mut line = String::new();
    let output = server.0.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it says its name");
    let name = line.trim().strip_prefix("serving as ").expect("it says its name");
    assert_eq!(said(&["call", name]), SAID);
}
