//! Examples that run as jobs of Split-C: by themselves, by `doorbell run` and by MPICH's launcher.

use doorbell_kit::judges::Judge;
use doorbell_kit::lab::{self, Namespace};

use crate::program::{Program, Starter};
use crate::{printed_in, root, rows};

/// MPICH's launcher, which speaks PMI-1.
const HYDRA: Judge = Judge {
    name: "mpiexec.hydra",
    install: "apt-get install mpich",
    probe: &["mpiexec.hydra", "--version"],
};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Runs an example as its first lines print, and then with few data: in three threads, by
/// `doorbell run` and by Hydra. Each time the example must say in the end that its result is
/// verified. Returns what it has said with few data, and in how many processes.
fn run_in_each_way(place: &Namespace, example: &str, few: &str) -> Vec<(usize, String)> {
    let printed = printed_in(&format!("examples/{example}/main.rs"));
    assert_eq!(printed.len(), 3, "{printed:?}");
    for command in printed {
        verified(Program::start(place, root(), example, &command.arguments).end());
    }
    let mut ways = vec![
        (3, Starter::Itself, words(&format!("{few} --threads 3"))),
        (3, Starter::DoorbellRun(3), words(few)),
    ];
    if HYDRA.is_here() {
        ways.push((2, Starter::Hydra(2), words(few)));
    }
    let run = |(processes, starter, arguments): (usize, Starter, Vec<String>)| {
        let program = Program::start_by(starter, place, root(), example, &arguments);
        (processes, verified(program.end()))
    };
    ways.into_iter().map(run).collect()
}

/// Checks that what an example has said ends with a verified result.
#[track_caller]
fn verified(said: String) -> String {
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("verified: "), "{said}");
    said
}

/// Runs an example with arguments that make no sense, alone and in a job. It must fail, and say so.
/// Clap writes what it refuses in pieces, so of a job that it refuses, one process has to be enough:
/// the pieces of two could be mixed within a line.
fn refuses(place: &Namespace, example: &str, arguments: &str, expected: &str) {
    let processes = if expected.starts_with("invalid value") { 1 } else { 2 };
    for starter in [Starter::Itself, Starter::DoorbellRun(processes)] {
        let program = Program::start_by(starter, place, root(), example, &words(arguments));
        let said = program.fail();
        assert!(said.contains(expected), "{example} {arguments} says\n{said}");
    }
}

#[test]
fn is_ranks_the_keys_of_class_s_in_each_way_of_starting() {
    lab::test(|lab| {
        for (processes, said) in run_in_each_way(&lab.near, "is", "--class S") {
            let first = format!(
                "IS, class S: {processes} processes rank 65536 keys below 2048, 10 times\n"
            );
            assert!(said.starts_with(&first), "{said}");
            let last = "verified: 50 tests of ranks passed each time, and the keys were in order\n";
            assert!(said.ends_with(last), "{said}");
            assert_eq!(rows(&said)[..3], ["sequential", "keys", "counts"], "{said}");
        }
        refuses(&lab.near, "is", "--class X", "invalid value 'X' for '--class <CLASS>'");
    });
}

#[test]
fn is_ranks_keys_in_processes_among_which_they_do_not_divide_and_in_one() {
    lab::test(|lab| {
        for arguments in ["--threads 7", "--threads 1", "--threads 5 --carrier messages"] {
            let arguments = words(&format!("--class S {arguments}"));
            verified(Program::start(&lab.near, root(), "is", &arguments).end());
        }
    });
}

#[test]
fn ep_has_the_sums_of_class_s_in_each_way_of_starting() {
    lab::test(|lab| {
        for (processes, said) in run_in_each_way(&lab.near, "ep", "--class S") {
            let first = format!("EP, class S: {processes} processes try 16777216 pairs\n");
            assert!(said.starts_with(&first), "{said}");
            let last = "verified: 13176389 pairs of Gaussian numbers, whose sums are right\n";
            assert!(said.ends_with(last), "{said}");
        }
        refuses(&lab.near, "ep", "--class 8", "invalid value '8' for '--class <CLASS>'");
    });
}

#[test]
fn radix_sort_has_the_result_of_a_sequential_sort_in_each_way_of_starting() {
    lab::test(|lab| {
        for (processes, said) in run_in_each_way(&lab.near, "radix_sort", "--quick") {
            let first = format!("{processes} processes sort 20000 keys of 32 bits together\n");
            assert!(said.starts_with(&first), "{said}");
        }
        // Two different keys; fewer keys than processes, so that some have none; and a single one.
        for arguments in
            ["--quick --threads 5 --different 2", "--keys 2 --threads 3", "--keys 1 --threads 1"]
        {
            verified(Program::start(&lab.near, root(), "radix_sort", &words(arguments)).end());
        }
        refuses(&lab.near, "radix_sort", "--keys 0", "invalid value '0' for '--keys <KEYS>'");
    });
}

#[test]
fn connected_components_are_those_of_a_union_find_in_each_way_of_starting() {
    lab::test(|lab| {
        for (processes, said) in run_in_each_way(&lab.near, "connected_components", "--quick") {
            let first = format!("{processes} processes find components of 900 nodes in 2 dim");
            assert!(said.starts_with(&first), "{said}");
        }
        // A single node; parts that are narrower than an edge is long; a path, of which each
        // process has a piece; nodes without edges, and all edges.
        for arguments in [
            "--side 1 --threads 3",
            "--dimensions 3 --side 3 --threads 7",
            "--dimensions 1 --side 60 --percent 100 --threads 9",
            "--quick --percent 0 --threads 3",
            "--quick --percent 100 --threads 4 --carrier messages",
            "--side 200 --percent 50 --threads 5",
        ] {
            let example = "connected_components";
            verified(Program::start(&lab.near, root(), example, &words(arguments)).end());
        }
        let expected = "that many nodes have numbers beyond 32 bits";
        refuses(&lab.near, "connected_components", "--side 70000", expected);
    });
}

#[test]
fn halo_has_the_cells_of_a_sequential_run_in_each_way_of_starting() {
    lab::test(|lab| {
        let printed = printed_in("examples/halo/main.rs");
        assert_eq!(printed.len(), 3, "{printed:?}");
        for command in printed {
            verified(Program::start(&lab.near, root(), "halo", &command.arguments).end());
        }
        let mut ways = vec![(4, Starter::Itself), (3, Starter::DoorbellRun(3))];
        if HYDRA.is_here() {
            ways.push((2, Starter::Hydra(2)));
        }
        for (members, starter) in ways {
            let few = words("--cells 60 --steps 30");
            let said = Program::start_by(starter, &lab.near, root(), "halo", &few).end();
            let said = verified(said);
            let first = format!("{members} members, 60 × 60 cells, 30 steps: ");
            assert!(said.starts_with(&first), "{said}");
        }
        let why = "--cells 1: at least as many as there are members";
        refuses(&lab.near, "halo", "--cells 1", why);
    });
}
