//! A host vanishes, or the network to it, while a job runs: nothing says so, and the processes of
//! both hosts end all the same.

use std::thread;
use std::time::Duration;

use doorbell_job::{Environment, JobError, Members, Place};
use doorbell_kit::lab;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Lets a process of a job of two meet the other one, whom process 0 serves.
fn meets(rank: usize, at: &str) -> Members {
    let variables = [
        ("DOORBELL_RANK", rank.to_string()),
        ("DOORBELL_SIZE", "2".to_owned()),
        ("DOORBELL_RENDEZVOUS", format!("{at}:7007")),
        ("DOORBELL_SECRET", "a secret that was drawn".to_owned()),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
    let environment: Environment = variables.collect();
    let place = Place::find_in(&environment, LONG).expect("the variables make sense");
    place.expect("it is in a job").meet().expect("both come")
}

#[test]
fn processes_whose_hosts_have_lost_each_other_end() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let (at, host) = (cable.near.ipv4.to_string(), &lab.far);
        thread::scope(|scope| {
            let far = scope.spawn(|| host.within(|| meets(1, &at)));
            let near = meets(0, &at);
            let far = far.join().expect("it does not panic");
            lab.near.ip("link set a0 down").expect("it is up");
            let far = scope.spawn(move || far.finish());
            let why = near.finish().expect_err("the other one is not done");
            assert!(matches!(why, JobError::Ended { rank: 1 }), "{why}");
            let why = far.join().expect("it does not panic").expect_err("process 0 is not there");
            assert!(matches!(why, JobError::ServiceEnded), "{why}");
        });
    });
}
