//! What it takes many processes to meet: the messages of the rendezvous grow no faster than P log
//! P.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use doorbell_job::{Environment, Place, Service, Terms};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// The stack of a thread that plays a process.
const STACK: usize = 128 << 10;

/// Lets so many processes meet, tell each other their addresses, and end. Returns how many messages
/// that took.
fn messages(size: usize) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let terms = Terms { size, secret: b"a secret that was drawn".to_vec(), within: LONG };
    let service = Service::start(listener, terms).expect("threads are to be had");
    let port = service.address().port();
    let plays = move |rank: usize| {
        let variables = [
            ("DOORBELL_RANK", rank.to_string()),
            ("DOORBELL_SIZE", size.to_string()),
            ("DOORBELL_RENDEZVOUS", format!("127.0.0.1:{port},served")),
            ("DOORBELL_SECRET", "a secret that was drawn".to_owned()),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        let environment: Environment = variables.collect();
        let place = Place::find_in(&environment, LONG).expect("the variables make sense");
        let members = place.expect("it is in a job").meet().expect("all come");
        let all = members.exchange(&rank.to_string()).expect("all tell");
        assert_eq!((all.len(), &*all[size - 1]), (size, &*(size - 1).to_string()));
        members.finish().expect("all finish");
    };
    thread::scope(|scope| {
        for rank in 0..size {
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, move || plays(rank)).expect("threads are to be had");
        }
    });
    service.messages()
}

#[test]
fn the_messages_of_the_rendezvous_grow_no_faster_than_p_log_p() {
    // Both ends of every connection are in this process.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("the system tells");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the hard limit");
    let few = messages(16);
    for size in [128_u64, 1024] {
        let many = messages(size as usize);
        let bound = few * (size * u64::from(size.ilog2())) / (16 * 4);
        println!("{size} processes: {many} messages, and at most {bound} by P log P");
        assert!(many <= bound, "{size} processes take {many} messages, and {few} do for 16");
    }
}
