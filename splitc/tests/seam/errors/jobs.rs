//! Jobs that can't be: of no process or too many, of members without an address, and jobs whose
//! configuration has the longest durations that there are.

use std::time::Duration;

use doorbell_kit::{datagrams_to_closed_ports, lab};
use doorbell_splitc::{Config, Job, RunError};
use doorbell_verbs::Progress;

use crate::common::{carriers, config, in_time, run};
use crate::errors::works;

#[test]
fn a_job_of_no_process_or_of_too_many_is_refused_before_any_is_started() {
    for count in [0, 4097, 1_000_000_000, usize::MAX] {
        for job in [Job::threads(count), Job::processes(count)] {
            let ended = in_time(move || job.run(async |_| Ok(())));
            let why = ended.expect_err("there is no such job");
            assert!(matches!(why, RunError::Count { count: found, .. } if found == count), "{why}");
            let text = why.to_string();
            assert!(text.contains(&count.to_string()) && text.contains("4096"), "{text}");
        }
    }
}

#[test]
fn a_member_of_a_job_in_which_an_address_is_empty_is_told_which_at_once() {
    let own = format!("shm:empty-{}/0", std::process::id());
    for (rank, addresses, empty) in [
        (0, vec![own.clone(), String::new()], 1),
        (1, vec![String::new(), own.clone()], 0),
        (0, vec![own.clone(), own.clone() + "1", String::new()], 2),
    ] {
        // Whoever waited for as long as the start may take would wait for too long.
        let config = Config { start: Duration::from_secs(3600), ..config() };
        let job = Job::member(rank, addresses).config(config);
        let why = in_time(move || job.run(async |_| Ok(()))).expect_err("nobody is there");
        let expected = format!("the address of process {empty}");
        assert!(why.to_string().contains(&expected), "{why}");
    }
    let job = Job::member(0, [""]);
    assert!(in_time(move || job.run(async |_| Ok(()))).is_err(), "no device has an empty name");
}

/// The system says that nobody is at its port, and each attempt fails at once.
#[test]
fn a_member_whose_port_is_still_closed_is_waited_for() {
    lab::test(|_| {
        // Nobody else has addresses in this namespace.
        let member = |rank| {
            let addresses = ["udp:127.0.0.1:5000", "udp:127.0.0.1:5001"];
            let job = Job::member(rank, addresses).config(config());
            std::thread::spawn(move || job.run(async |world| Ok(works(&world).await?)))
        };
        let first = member(1);
        while datagrams_to_closed_ports() < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for member in [member(0), first] {
            member.join().expect("no panic").expect("both have come");
        }
    });
}

/// Without a key, whoever reached a process could take part, and had its heap.
#[test]
fn a_member_that_other_hosts_reach_is_refused_without_a_key_and_told_how_to_set_one() {
    let far = || ["udp:192.0.2.7:5000", "udp:192.0.2.8:5000"];
    for (key, found) in [(0, "has no key"), (0xC0FFEE, "c0ffee, which nobody has drawn")] {
        // Whoever waited for as long as the start may take would wait for too long.
        let config = Config { key, start: Duration::from_secs(3600), ..config() };
        let job = Job::member(1, far()).device("udp:127.0.0.1:0").config(config);
        let why = in_time(move || job.run(async |_| Ok(()))).expect_err("it needs a key");
        let why = why.to_string();
        for said in [found, "process 0", "udp:192.0.2.7:5000", "DOORBELL_KEY", "/dev/urandom"] {
            assert!(why.contains(said), "{why}");
        }
    }
}

#[test]
fn members_of_one_host_need_no_key() {
    let addresses = ["shm", "udp"].map(|device| crate::errors::strangers::addresses(device, 2));
    for addresses in addresses {
        let config = Config { key: 0, ..config() };
        in_time(move || {
            std::thread::scope(|scope| {
                for rank in 0..2 {
                    let job = Job::member(rank, &addresses).config(config.clone());
                    scope.spawn(move || {
                        job.run(async |world| Ok(works(&world).await?)).expect("a job");
                    });
                }
            });
        });
    }
}

#[test]
fn durations_without_an_end_are_as_good_as_any_others() {
    let longest = Duration::MAX;
    for device in ["shm", "udp"] {
        for progress in [Progress::Inline, Progress::Dedicated { core: None }] {
            let config = Config { progress, ..config() };
            for config in [
                Config { start: longest, ..config.clone() },
                Config { patience: longest, ..config.clone() },
                Config { spin: longest, ..config.clone() },
                Config { start: longest, patience: longest, spin: longest, ..config },
            ] {
                let carrier = carriers(device)[0];
                let config = Config { carrier: Some(carrier), ..config };
                run(2, device, config, async |world| {
                    works(&world).await?;
                    // For as long as a process naps.
                    let words = world.spread::<u64>(2).await?;
                    if world.rank() == 0 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        words.at(1).write(1).await?;
                    } else {
                        words.at(1).wait_until(|value| value == 1).await?;
                    }
                    Ok(world.barrier().await?)
                });
            }
        }
    }
}
