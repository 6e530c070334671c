//! One of the processes: what it does, and how a test talks to it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use doorbell_core::cm::{Config, ConnectionManager};
use doorbell_core::nic::Seed;
use doorbell_core::wire::{CaGuid, ServiceId};
use doorbell_kit::child::{self, Child};
use doorbell_kit::readable;
use doorbell_transports::sharing::{Event, Membership, TAG_BITS};

/// How long until something that hangs is given up.
const HANGS: Duration = Duration::from_secs(60);

/// How it is with a process, as it says itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State {
    pub tag: u32,
    /// How often it became the owner.
    pub owner: u32,
    pub granted: BTreeSet<u64>,
    pub taken: BTreeSet<u64>,
    /// What others listen to.
    pub others: BTreeSet<u64>,
    /// The tags of the others who are there.
    pub there: BTreeSet<u64>,
}

/// Numbers in a line.
fn joined(numbers: &BTreeSet<u64>) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn parted(numbers: &str) -> BTreeSet<u64> {
    numbers.split(',').filter_map(|number| number.parse().ok()).collect()
}

impl State {
    fn line(&self) -> String {
        let sets = [&self.granted, &self.taken, &self.others, &self.there].map(joined);
        format!("{};{};{}", self.tag, self.owner, sets.join(";"))
    }

    fn read(line: &str) -> Self {
        let mut parts = line.split(';');
        let mut next = || parts.next().expect("six parts");
        let [tag, owner] = [next(), next()].map(|number| number.parse().expect("a number"));
        let [granted, taken, others, there] = [next(), next(), next(), next()].map(parted);
        Self { tag, owner, granted, taken, others, there }
    }
}

/// A process, seen from within: what shares, and the manager that is told.
struct Inside {
    membership: Membership,
    manager: ConnectionManager<u8>,
    state: State,
}

/// What a process does that another test started: nothing, if none did.
#[test]
fn a_process_that_another_test_starts() {
    let Some(key) = child::part() else { return };
    let membership = Membership::join(&key).expect("membership");
    let tag = membership.tag();
    let config = Config { tag, tag_bits: TAG_BITS, owner: false, ..Config::new(CaGuid(1)) };
    let manager = ConnectionManager::new(config, Seed::from_number(tag.into())).expect("a manager");
    let readiness = membership.readiness().try_clone_to_owned().expect("a descriptor");
    let state = State { tag, ..State::default() };
    let inside = Mutex::new(Inside { membership, manager, state });
    let lock = || inside.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(line) = child::listen() {
                let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
                lock().obey(command, argument);
            }
            std::process::exit(0);
        });
        // It sleeps: whatever the readiness does not tell of is not seen.
        while readable(std::os::fd::AsFd::as_fd(&readiness), HANGS * 2) {
            let mut inside = lock();
            while let Some(event) = inside.membership.turn() {
                inside.act_upon(event);
            }
        }
    });
}

impl Inside {
    fn act_upon(&mut self, event: Event) {
        let Self { manager, state, .. } = self;
        match event {
            Event::Welcome => child::tell("welcome"),
            Event::BecameOwner => {
                manager.set_owner(true);
                state.owner += 1;
            }
            Event::Joined(tag) | Event::Left(tag) => {
                let left = event == Event::Left(tag);
                manager.set_vacant(tag, left).expect("another's tag");
                if left {
                    state.there.remove(&tag.into());
                } else {
                    assert!(state.there.insert(tag.into()), "{event:?} twice");
                }
            }
            Event::Listens(service) => {
                manager.others_listen(service, true).expect("not ours");
                assert!(state.others.insert(service.0), "{event:?} twice");
            }
            Event::StopsListening(service) => {
                manager.others_listen(service, false).expect("not ours");
                assert!(state.others.remove(&service.0), "{event:?} of what nobody had");
            }
            Event::Granted(service) => {
                manager.listen(service, 8).expect("nobody's");
                state.granted.insert(service.0);
            }
            Event::Taken(service) => {
                state.taken.insert(service.0);
            }
        }
    }

    fn obey(&mut self, command: &str, argument: &str) {
        let service = || ServiceId(argument.parse().expect("a number"));
        match command {
            "listen" => self.membership.listen(service()).expect("not asked for before"),
            "stop" => {
                self.manager.stop(service()).expect("it is ours");
                self.membership.stop(service());
                self.state.granted.remove(&service().0);
            }
            "state" => child::tell(self.state.line()),
            "datagram" => {
                let bytes: Vec<u8> = argument.split(',').map(|n| n.parse().expect("n")).collect();
                self.manager.receive(&0, &bytes);
                while let Some(answer) = self.manager.transmit() {
                    child::tell(answer.bytes.map(|byte| byte.to_string()).join(","));
                }
                child::tell("");
            }
            _ => panic!("no such command: {command}"),
        }
    }
}

/// A process, seen from the test.
pub struct Process(Child);

impl Process {
    /// Starts one, which will share under this key.
    pub fn begin(key: &str) -> Self {
        Self(Child::start("sharing::process::a_process_that_another_test_starts", key, None))
    }

    /// Waits until its tag may be used.
    pub fn welcome(mut self) -> Self {
        assert_eq!(self.0.hear(), "welcome");
        self
    }

    pub fn start(key: &str) -> Self {
        Self::begin(key).welcome()
    }

    pub fn state(&mut self) -> State {
        self.0.say("state");
        State::read(&self.0.hear())
    }

    /// Waits for a state.
    #[track_caller]
    pub fn until(&mut self, is: impl Fn(&State) -> bool) -> State {
        let start = Instant::now();
        loop {
            let state = self.state();
            if is(&state) {
                return state;
            }
            assert!(start.elapsed() < HANGS, "it stays as {state:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn listen(&mut self, service: u64) {
        self.0.say(format!("listen {service}"));
    }

    /// The same, and waits until it is told so.
    #[track_caller]
    pub fn is_granted(&mut self, service: u64) {
        self.listen(service);
        self.until(|state| state.granted.contains(&service));
    }

    pub fn stop(&mut self, service: u64) {
        self.0.say(format!("stop {service}"));
    }

    /// Gives its manager a datagram, and returns what that answers.
    pub fn datagram(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
        self.0.say(format!("datagram {}", numbers.join(",")));
        let answers = std::iter::from_fn(|| Some(self.0.hear()).filter(|line| !line.is_empty()));
        let bytes = |line: String| line.split(',').map(|n| n.parse().expect("n")).collect();
        answers.map(bytes).collect()
    }

    /// Ends it by SIGKILL.
    pub fn kill(mut self) {
        self.0.kill();
    }
}

/// A key that no other test has, of this process or another.
pub fn key() -> String {
    static KEYS: AtomicU32 = AtomicU32::new(0);
    format!("test/{}/{}", std::process::id(), KEYS.fetch_add(1, Ordering::Relaxed))
}

/// Takes the owner out of some, when there is one and all know of each other.
#[track_caller]
pub fn owner(processes: &mut Vec<Process>) -> Process {
    let all = processes.len();
    let start = Instant::now();
    loop {
        let states: Vec<_> = processes.iter_mut().map(Process::state).collect();
        let owners: Vec<_> = (0..all).filter(|&at| states[at].owner > 0).collect();
        assert!(owners.len() <= 1, "{states:#?}");
        let agreed = states.iter().all(|state| state.there.len() == all - 1);
        if agreed && let [owner] = owners[..] {
            assert_eq!(states[owner].owner, 1);
            return processes.remove(owner);
        }
        assert!(start.elapsed() < HANGS, "{states:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The tags of some, which are all distinct.
#[track_caller]
pub fn tags(processes: &mut [Process]) -> BTreeSet<u64> {
    let tags: BTreeSet<u64> =
        processes.iter_mut().map(|process| process.state().tag.into()).collect();
    assert_eq!(tags.len(), processes.len());
    tags
}
