//! A program of Split-C is started by `doorbell run`, by Hydra and over ssh; and what is told when
//! a process fails, does not come, or is ended.
//!
//! The program is this file's own: each test starts it again, and the processes of the job run
//! [`part_of_a_job`] in it.

mod blame;
mod clusters;
mod endings;
mod failures;
mod hosts;
mod limits;
mod program;
mod ssh;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use doorbell_kit::judges::Judge;
use doorbell_kit::{child, stranger};

use program::program;

/// Runs what a process of a job does, which the variable `PART` names.
#[test]
#[ignore = "it is what the processes run that the other tests start"]
fn part_of_a_job() {
    program::play();
}

/// The command `doorbell run` with options, behind which programs follow.
fn doorbell_run(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorbell"));
    command.arg("run").args(options);
    command
}

fn finished(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the command runs");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8(said).expect("text"))
}

/// The lines that processes have printed of themselves, sorted.
fn lines(said: &str) -> Vec<&str> {
    let mut lines: Vec<_> = said.lines().filter(|line| line.contains("process ")).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn doorbell_run_starts_the_processes_of_a_split_c_program() {
    for device in [&[][..], &["--device", "udp:127.0.0.1:0"]] {
        let options = [&["-n", "3"], device].concat();
        let (output, said) = finished(doorbell_run(&options).args(program("sum")));
        assert!(output.status.success(), "{said}");
        let expected = ["process 0 of 3: sum 3", "process 1 of 3: sum 3", "process 2 of 3: sum 3"];
        assert_eq!(lines(&said), expected, "{said}");
    }
}

#[test]
fn many_processes_on_few_processors_meet() {
    let (output, said) = finished(doorbell_run(&["-n", "64"]).args(program("sum")));
    assert!(output.status.success(), "{said}");
    let sums = lines(&said).into_iter().filter(|line| line.ends_with("of 64: sum 2016"));
    assert_eq!(sums.count(), 64, "{said}");
}

#[test]
fn each_line_of_output_begins_with_its_process_on_request() {
    let (output, said) = finished(doorbell_run(&["-n", "2", "--prefix"]).args(program("sum")));
    assert!(output.status.success(), "{said}");
    assert_eq!(lines(&said), ["0: process 0 of 2: sum 1", "1: process 1 of 2: sum 1"], "{said}");
}

#[test]
fn several_programs_are_one_job() {
    let mut command = doorbell_run(&["-n", "1"]);
    command.args(program("sum")).args([":", "-n", "2"]).args(program("sum"));
    let (output, said) = finished(&mut command);
    assert!(output.status.success(), "{said}");
    assert_eq!(lines(&said).len(), 3, "{said}");
}

#[test]
fn standard_input_goes_to_process_0() {
    let mut command = doorbell_run(&["-n", "2", "--prefix", "sh", "-c", "cat; echo end"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"a line\n").expect("it is taken");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let mut said: Vec<_> = std::str::from_utf8(&output.stdout).expect("text").lines().collect();
    said.sort_unstable();
    assert_eq!(said, ["0: a line", "0: end", "1: end"]);
}

#[test]
fn another_user_of_the_machine_finds_the_secret_of_a_job_nowhere_in_proc() {
    const TEST: &str =
        "launchers::another_user_of_the_machine_finds_the_secret_of_a_job_nowhere_in_proc";
    if child::part().is_some() {
        let secret = child::listen().expect("the test says it");
        let processes = std::fs::read_dir("/proc").expect("everybody may").flatten();
        let files = processes.flat_map(|process| {
            ["cmdline", "environ", "status"].map(|file| process.path().join(file))
        });
        let (mut read, mut found) = (0, Vec::new());
        for path in files {
            let Ok(text) = std::fs::read(&path) else { continue };
            read += 1;
            if text.windows(secret.len()).any(|part| part == secret.as_bytes()) {
                found.push(path);
            }
        }
        return child::tell(format!("{} {found:?}", read > 0));
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let mut command = doorbell_run(&["-n", "1", "sh", "-c", "echo $DOORBELL_SECRET; exec cat"]);
    let mut job = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut secret = String::new();
    let said = job.stdout.as_mut().expect("it is piped");
    BufReader::new(said).read_line(&mut secret).expect("text");
    assert!(secret.trim().len() >= 16, "{secret:?}");
    stranger.say(secret.trim());
    assert_eq!(stranger.hear(), "true []");
    stranger.end();
    drop(job.stdin.take());
    assert!(job.wait().expect("it is a child").success());
}

#[test]
fn the_time_to_come_is_that_of_the_option_or_else_of_the_environment() {
    for (set, options, expected) in [
        (None, &[][..], "30\n"),
        (Some("7"), &[], "7\n"),
        (Some("7"), &["--within", "8"], "8\n"),
        (Some("soon"), &[], "doorbell: DOORBELL_WITHIN is `soon`: a number of whole seconds is"),
    ] {
        let mut command = doorbell_run(options);
        command.args(["-n", "1", "sh", "-c", "echo $DOORBELL_WITHIN"]);
        command.env_remove("DOORBELL_WITHIN").envs(set.map(|set| ("DOORBELL_WITHIN", set)));
        let (_, said) = finished(&mut command);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn variables_without_sense_are_named() {
    for (name, value, expected) in [
        ("DOORBELL_SIZE", "none", "DOORBELL_SIZE is `none`: a decimal number"),
        ("DOORBELL_RENDEZVOUS", "here", "DOORBELL_RENDEZVOUS is `here`: HOST:PORT"),
        ("DOORBELL_RANK", "2", "ranks go from 0 to 2-1"),
    ] {
        let [own, arguments @ ..] = &program("sum")[..] else { panic!("it has a name") };
        let mut command = Command::new(own);
        command.args(arguments);
        for (known, usual) in
            [("DOORBELL_RANK", "0"), ("DOORBELL_SIZE", "2"), ("DOORBELL_RENDEZVOUS", "127.0.0.1:1")]
        {
            command.env(known, if known == name { value } else { usual });
        }
        let (output, said) = finished(&mut command);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// MPICH's launcher, which speaks PMI-1.
const HYDRA: Judge = Judge {
    name: "mpiexec.hydra",
    install: "apt-get install mpich",
    probe: &["mpiexec.hydra", "--version"],
};

#[test]
fn hydra_starts_the_same_program() {
    if !HYDRA.is_here() {
        return;
    }
    for count in [2, 5] {
        let mut command = Command::new("mpiexec.hydra");
        command.args(["-n", &count.to_string()]).args(program("sum"));
        let (output, said) = finished(&mut command);
        assert!(output.status.success(), "{said}");
        let sum: i32 = (0..count).sum();
        let expected: Vec<_> =
            (0..count).map(|rank| format!("process {rank} of {count}: sum {sum}")).collect();
        assert_eq!(lines(&said), expected, "{said}");
    }
}

#[test]
fn hydra_ends_a_job_of_which_one_process_fails() {
    if !HYDRA.is_here() {
        return;
    }
    let mut command = Command::new("mpiexec.hydra");
    let (output, said) = finished(command.args(["-n", "3"]).args(program("panics")));
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("process 1 panics here"), "{said}");
}
