//! Which process the others name when one ends before a job of an MPI launcher is over, and the
//! status of the job. Such a launcher sees no more of a process than its exit status.

use std::process::Command;

use doorbell_kit::effort;
use doorbell_kit::judges::Judge;

use super::program::program;
use super::{HYDRA, doorbell_run, finished};

/// Open MPI's launcher.
const OPEN_MPI: Judge = Judge {
    name: "mpirun.openmpi",
    install: "apt-get install openmpi-bin",
    probe: &["mpirun.openmpi", "--version"],
};

/// The ways in which process 1 of the program ends before the others are done.
const WAYS: [&str; 5] = ["returns", "exits 0", "is killed", "fails", "aborts"];

/// Asserts that a job in which process 1 has ended has failed, and that no process is named in its
/// place.
#[track_caller]
fn fails_because_of_process_1(mut command: Command, way: &str) {
    let (output, said) = finished(&mut command);
    assert!(!output.status.success(), "{way}: {said}");
    for line in said.lines() {
        let names_another = ["process 0 has gone", "process 2 has gone", "process 0 is in `leave`"]
            .iter()
            .any(|named| line.contains(named));
        let names_first = line.contains("process 1 was the first to end");
        assert!(!names_another || names_first, "{way}: {said}");
    }
}

/// The others named one that had ended because of process 1, 2 of 3 times, and the status was 0 in 6
/// of 16 runs where process 1 ended with 0.
#[test]
fn hydra_fails_a_job_of_which_one_process_ends_early_and_all_name_that_one() {
    if !HYDRA.is_here() {
        return;
    }
    for way in WAYS {
        for _ in 0..effort(4, 16) {
            let mut command = Command::new("mpiexec.hydra");
            command.args(["-n", "3"]).args(program(way));
            fails_because_of_process_1(command, way);
        }
    }
}

#[test]
fn open_mpi_fails_a_job_of_which_one_process_ends_early_and_all_name_that_one() {
    if !OPEN_MPI.is_here() {
        return;
    }
    for way in WAYS {
        for _ in 0..effort(2, 16) {
            let mut command = Command::new("mpirun.openmpi");
            command.args(["--allow-run-as-root", "--oversubscribe", "-n", "3"]);
            command.env("DOORBELL_SECRET", "a secret that was drawn").args(program(way));
            fails_because_of_process_1(command, way);
        }
    }
}

#[test]
fn doorbell_run_fails_a_job_of_which_one_process_ends_early_and_all_name_that_one() {
    for way in WAYS {
        for _ in 0..effort(2, 16) {
            let mut command = doorbell_run(&["-n", "3"]);
            command.args(program(way));
            fails_because_of_process_1(command, way);
        }
    }
}
