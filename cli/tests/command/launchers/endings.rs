//! How `doorbell run` ends a job: by signals, and with all that its processes have started.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::doorbell_run;
use super::program::{Started, gone, program};

/// The program that waits, in a shell that waits for it, and would do something after.
fn wrapped() -> Vec<String> {
    let shell = ["sh", "-c", "\"$@\"; true", "sh"].map(str::to_owned);
    shell.into_iter().chain(program("waits")).collect()
}

/// A process that ends only by force.
const STAYS: [&str; 3] =
    ["sh", "-c", "trap '' TERM; echo pid $$; while :; do sleep 1000 & wait $!; done"];

fn send(signal: Signal, to: i32) {
    kill(Pid::from_raw(to), signal).expect("it runs");
}

#[test]
fn signals_are_passed_on_and_end_the_job() {
    let mut command = doorbell_run(&["-n", "2"]);
    let mut started = Started::start(command.args(wrapped()));
    let pids = started.pids(2);
    send(Signal::SIGTERM, started.id());
    assert_eq!(started.wait().code(), Some(128 + 15));
    pids.into_iter().for_each(gone);
}

#[test]
fn processes_that_do_not_end_by_a_signal_are_killed() {
    let mut command = doorbell_run(&["-n", "2"]);
    let mut started = Started::start(command.args(STAYS));
    let pids = started.pids(2);
    send(Signal::SIGTERM, started.id());
    assert_eq!(started.wait().code(), Some(128 + 15));
    pids.into_iter().for_each(gone);
}

/// In an earlier version, processes that a process of the job had started stayed, because only the
/// process itself was killed.
#[test]
fn nothing_is_left_behind_when_the_launcher_is_killed() {
    for program in [wrapped(), STAYS.map(str::to_owned).to_vec()] {
        let mut command = doorbell_run(&["-n", "2"]);
        let mut started = Started::start(command.args(program));
        let pids = started.pids(2);
        send(Signal::SIGKILL, started.id());
        assert_eq!(started.wait().signal(), Some(9));
        pids.into_iter().for_each(gone);
    }
}

#[test]
fn nothing_is_left_behind_when_the_process_is_killed_that_keeps_the_job() {
    let mut command = doorbell_run(&["-n", "2"]);
    let mut started = Started::start(command.args(wrapped()));
    let pids = started.pids(2);
    let children = format!("/proc/{0}/task/{0}/children", started.id());
    let children = std::fs::read_to_string(children).expect("the launcher runs");
    send(Signal::SIGKILL, children.trim().parse().expect("the launcher has one child"));
    assert_eq!(started.wait().code(), Some(128 + 9));
    pids.into_iter().for_each(gone);
}

/// In an earlier version, the launcher waited for the end of an output that was held by a process
/// which the failed one had started.
#[test]
fn what_a_failed_process_has_started_ends_and_holds_no_output() {
    for options in [&["--prefix"][..], &[]] {
        let script = "setsid sleep 1000 & echo pid $!; exit 3";
        let mut command = doorbell_run(options);
        let mut started = Started::start(command.args(["-n", "1", "sh", "-c", script]));
        let pids = started.pids(1);
        assert_eq!(started.wait().code(), Some(3));
        pids.into_iter().for_each(gone);
    }
}

/// The launcher and its processes are one group, to all of which the terminal sends signals, and of
/// which process 0 may read.
#[test]
fn ctrl_c_comes_once_and_process_0_reads_the_terminal() {
    let pty = openpty(None, None).expect("there are terminals");
    let mut terminal = File::from(pty.master);
    let script = "trap 'echo pid 1' INT; trap 'exit 0' TERM; read -r line; echo pid $line; \
                  while :; do sleep 1000 & wait $!; done";
    // Where the tests run in the background of a shell, Ctrl-C is ignored, and so it would be here.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", "setsid", "--ctty", "--wait"]);
    command.args([env!("CARGO_BIN_EXE_doorbell"), "run", "-n", "1"]);
    command.args(["sh", "-c", script]).stdin(pty.slave);
    let mut started = Started::start(&mut command);
    terminal.write_all(b"1000000\n").expect("somebody reads it");
    assert_eq!(started.pids(1), [1_000_000]);
    terminal.write_all(b"\x03").expect("somebody reads it");
    // The launcher passes signals on in their order.
    assert_eq!(started.pids(1), [1]);
    send(Signal::SIGTERM, started.id());
    assert_eq!(started.pids(1), [0; 0], "Ctrl-C came again");
    assert_eq!(started.wait().code(), Some(128 + 2));
}

/// In an earlier version, the launcher ended with the terminal, although it was started by `nohup`.
#[test]
fn a_signal_that_was_ignored_when_the_launcher_was_started_stays_ignored() {
    let mut command = Command::new("nohup");
    command.args([env!("CARGO_BIN_EXE_doorbell"), "run", "-n", "1"]).args(program("waits"));
    let mut started = Started::start(&mut command);
    let pids = started.pids(1);
    send(Signal::SIGHUP, started.id());
    send(Signal::SIGTERM, started.id());
    assert_eq!(started.wait().code(), Some(128 + 15));
    pids.into_iter().for_each(gone);
}
