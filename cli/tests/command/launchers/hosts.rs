//! Jobs on two hosts, which are network namespaces with a cable between them: how their processes
//! reach each other.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

use doorbell_kit::judges::Scratch;
use doorbell_kit::lab::{self, Lab};

use super::program::program;
use super::{HYDRA, finished, lines};

/// The near host has processes 0 and 1 of a job, and the far host 2 and 3.
const NEAR: [usize; 2] = [0, 1];

/// Runs the four processes of a job, each with the variables of `more` for its host, and returns
/// what each has printed when all have ended.
fn job(lab: &Lab, part: (&str, &str), more: [&[(&str, &str)]; 2]) -> Vec<(Output, String)> {
    ended(started(lab, part, more))
}

/// Starts the four processes of a job.
fn started(lab: &Lab, (part, at): (&str, &str), more: [&[(&str, &str)]; 2]) -> Vec<Child> {
    let words = program(part);
    (0..4)
        .map(|rank| {
            let is_near = NEAR.contains(&rank);
            let mut command = match is_near {
                true => Command::new(&words[0]),
                false => lab.far.command(&words[0]),
            };
            command.args(&words[1..]);
            command.env("DOORBELL_RANK", rank.to_string()).env("DOORBELL_SIZE", "4");
            command
                .env("DOORBELL_RENDEZVOUS", format!("{at}:7007"))
                .env("DOORBELL_SECRET", "a secret that was drawn");
            command.env("DOORBELL_ROUTES", "1").env("DOORBELL_WITHIN", "20");
            command.envs(more[usize::from(!is_near)].iter().copied());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
        })
        .collect()
}

/// What processes have printed, when all have ended.
fn ended(children: Vec<Child>) -> Vec<(Output, String)> {
    let ended = children.into_iter().map(|child| {
        let output = child.wait_with_output().expect("it ends");
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        (output, String::from_utf8(said).expect("text"))
    });
    ended.collect()
}

/// The line in which a process says that all have worked together.
fn sum(rank: usize) -> String {
    format!("process {rank} of 4: sum 6")
}

#[test]
fn neighbours_share_memory_and_others_are_reached_by_udp() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&[], &[]]);
        for (rank, (output, said)) in job.iter().enumerate() {
            assert!(output.status.success() && said.contains(&sum(rank)), "{said}");
            let (beside, others) = match NEAR.contains(&rank) {
                true => (1 - rank, "2-3"),
                false => (5 - rank, "0-1"),
            };
            let expected = format!("process {rank} reaches {beside} by shm");
            assert!(said.contains(&expected), "{said}");
            let expected = format!(
                "process {rank} reaches {others} by udp; not by shm: the other process is on \
                 another machine"
            );
            assert!(said.contains(&expected), "{said}");
        }
    });
}

#[test]
fn an_ethernet_is_used_where_it_is_preferred_to_udp() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let devices = ("DOORBELL_DEVICE", "shm,packet,udp");
        let [near, far] =
            [[devices, ("DOORBELL_INTERFACE", "a0")], [devices, ("DOORBELL_INTERFACE", "b0")]];
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&near, &far]);
        for (rank, (output, said)) in job.iter().enumerate() {
            assert!(output.status.success() && said.contains(&sum(rank)), "{said}");
            let others = if NEAR.contains(&rank) { "2-3" } else { "0-1" };
            let expected = format!("process {rank} reaches {others} by packet; not by shm");
            assert!(said.contains(&expected), "{said}");
        }
    });
}

/// Two processes of a host chose the interface that they shared, heard nothing, and ended when the
/// time was over.
#[test]
fn processes_that_share_an_interface_of_a_host_use_the_next_device() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let devices = ("DOORBELL_DEVICE", "packet,udp");
        let [near, far] =
            [[devices, ("DOORBELL_INTERFACE", "a0")], [devices, ("DOORBELL_INTERFACE", "b0")]];
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&near, &far]);
        for (rank, (output, said)) in job.iter().enumerate() {
            assert!(output.status.success() && said.contains(&sum(rank)), "{said}");
            let (beside, others) = match NEAR.contains(&rank) {
                true => (1 - rank, "2-3"),
                false => (5 - rank, "0-1"),
            };
            let by_udp = format!(
                "process {rank} reaches {beside} by udp; not by packet: both processes use one \
                 interface, which does not hear itself"
            );
            let by_packet = format!("process {rank} reaches {others} by packet");
            assert!(said.contains(&by_udp) && said.contains(&by_packet), "{said}");
        }
    });
}

/// The second job was refused, since its processes had the service numbers of the first.
#[test]
fn two_jobs_use_an_interface_at_the_same_time() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let at = cable.near.ipv4.to_string();
        let devices = ("DOORBELL_DEVICE", "shm,packet");
        let folder = Scratch::new();
        let folder = folder.path().to_str().expect("it is text");
        let [first, second] = ["7007", "7008"].map(|port| format!("{at}:{port}"));
        // Of one secret, as a user may have it in a profile.
        let both = [&first, &second].map(|meets| {
            let more = [
                devices,
                ("DOORBELL_RENDEZVOUS", meets),
                // All processes of both have joined before one ends.
                ("MEETS_IN", folder),
            ];
            let near: Vec<_> = more.into_iter().chain([("DOORBELL_INTERFACE", "a0")]).collect();
            let far: Vec<_> = more.into_iter().chain([("DOORBELL_INTERFACE", "b0")]).collect();
            started(lab, ("sum", &at), [&near, &far])
        });
        let both = both.map(ended);
        for (rank, (output, said)) in both.iter().flat_map(|job| job.iter().enumerate()) {
            assert!(output.status.success() && said.contains(&sum(rank)), "{said}");
            assert!(said.contains(" by packet"), "{said}");
        }
    });
}

#[test]
fn a_host_that_cannot_open_a_device_is_reached_by_the_next() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let devices = ("DOORBELL_DEVICE", "shm,packet,udp:[::]:0");
        let near = [devices, ("DOORBELL_INTERFACE", "a0")];
        let far = [devices, ("DOORBELL_INTERFACE", "none0")];
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&near, &far]);
        for (rank, (output, said)) in job.iter().enumerate() {
            assert!(output.status.success() && said.contains(&sum(rank)), "{said}");
            assert!(
                said.contains(" by udp; not by shm: ") && said.contains("packet:none0"),
                "{said}"
            );
        }
    });
}

#[test]
fn a_device_that_cannot_reach_the_other_host_ends_all_processes_with_the_reason() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let devices = [("DOORBELL_DEVICE", "udp:127.0.0.1:0")];
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&devices, &devices]);
        for (output, said) in job {
            assert!(!output.status.success(), "{said}");
            assert!(said.contains("is reached from its own machine only"), "{said}");
        }
    });
}

#[test]
fn hosts_that_were_told_to_use_different_devices_are_named() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let far = [("DOORBELL_DEVICE", "udp")];
        let job = job(lab, ("sum", &cable.near.ipv4.to_string()), [&[], &far]);
        for (output, said) in job {
            assert!(!output.status.success(), "{said}");
            assert!(said.contains("was told to use the devices"), "{said}");
        }
    });
}

#[test]
fn a_host_that_dies_in_the_midst_ends_the_other_one() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let dies = [("DIES", "1")];
        let job = job(lab, ("dies", &cable.near.ipv4.to_string()), [&[], &dies]);
        for (rank, (output, said)) in job.iter().enumerate() {
            assert!(!output.status.success(), "process {rank} ended well: {said}");
        }
        // A process may hear first that its neighbour has ended for the same reason.
        let said: String = job[..2].iter().map(|(_, said)| &**said).collect();
        let named = |rank| said.contains(&format!("process {rank} has gone"));
        assert!(named(2) || named(3), "{said}");
    });
}

#[test]
fn hydra_starts_a_job_on_two_hosts() {
    if !HYDRA.is_here() {
        return;
    }
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        // Hydra has a program start its own helper on the other host, as ssh would.
        let mut stays = lab.far.command("sleep").arg("1000").spawn().expect("it runs");
        let files = Scratch::new();
        let launcher = files.path().join("launch");
        let mut script =
            "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\n".to_owned();
        let _ = writeln!(script, "exec nsenter --net=/proc/{}/ns/net sh -c \"$*\"", stays.id());
        std::fs::write(&launcher, script).expect("it is written");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&launcher, executable).expect("it is ours");
        let (near, far) = (cable.near.ipv4.to_string(), cable.far.ipv4.to_string());
        let mut command = Command::new("mpiexec.hydra");
        command.args(["-localhost", &near, "-launcher", "ssh", "-launcher-exec"]).arg(&launcher);
        command.args(["-hosts", &format!("{near}:2,{far}:2"), "-n", "4"]);
        command.args(["-genv", "DOORBELL_ROUTES", "1"]).args(program("sum"));
        let (output, said) = finished(&mut command);
        stays.kill().and_then(|()| stays.wait()).expect("it runs until then");
        assert!(output.status.success(), "{said}");
        let sums: Vec<_> = lines(&said).into_iter().filter(|line| line.contains("sum")).collect();
        assert_eq!(sums, (0..4).map(sum).collect::<Vec<_>>(), "{said}");
        for expected in ["process 0 reaches 1 by shm", "process 0 reaches 2-3 by udp"] {
            assert!(said.contains(expected), "{said}");
        }
    });
}
