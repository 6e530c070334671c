//! Limits of a process that stand in the way of devices: each error names the one that does.

use std::fs::File;

use doorbell_kit::{chain, child, lab, limit_addresses, limit_descriptors, limit_file_size};
use doorbell_transports::shm::Shm;
use doorbell_transports::{Address, Device, SharedMemory, Spec};

mod common {
    use doorbell_core::encap::PathId;
    use doorbell_core::nic::{Flow, Inbox};
    use doorbell_core::payload::Payload;
    use doorbell_core::wire::{Malformed, Packet};

    pub struct Nobody;

    impl Inbox for Nobody {
        fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
        fn malformed(&mut self, _: Malformed) {}
        fn gone(&mut self, _: PathId) {}
    }
}
use common::Nobody;

/// More than any device takes here to open, or two to link up.
const ENOUGH: usize = 16;

/// All descriptors that this process may have but some.
fn all_but(spare: usize) -> Vec<File> {
    limit_descriptors(256);
    let another = || File::open("/dev/null").ok();
    let mut all: Vec<_> = std::iter::from_fn(another).collect();
    all.truncate(all.len() - spare);
    all
}

/// Opens something with more and more descriptors to spare until it succeeds. Each error names the
/// limit.
fn until_enough<T, E: std::error::Error>(open: impl Fn() -> Result<T, E>) {
    for spare in 0..ENOUGH {
        let all = all_but(spare);
        let opened = open().map(drop).map_err(|why| chain(&why));
        drop(all);
        match opened {
            Ok(()) if spare > 0 => return,
            Ok(()) => panic!("it takes descriptors"),
            Err(why) => {
                assert!(
                    why.contains("ulimit -n") && why.contains("256"),
                    "{spare} to spare: {why}"
                );
            }
        }
    }
    panic!("{ENOUGH} are not enough");
}

fn open(spec: &str) -> Result<doorbell_transports::AnyDevice, doorbell_transports::DeviceError> {
    spec.parse::<Spec>().expect("a device").open(Default::default())
}

/// It was said that 127.0.0.1 is no address of this machine's.
#[test]
fn a_udp_device_for_which_there_is_no_descriptor_names_the_limit() {
    child::alone(|| until_enough(|| open("udp:127.0.0.1:0")));
}

#[test]
fn a_device_of_shared_memory_for_which_there_is_no_descriptor_names_the_limit() {
    child::alone(|| until_enough(|| Shm::join(&format!("limits/{}", std::process::id()))));
    child::alone(|| until_enough(Shm::pair));
}

/// It was said that there is no such interface.
#[test]
fn a_raw_device_for_which_there_is_no_descriptor_names_the_limit() {
    if child::part().is_some() {
        for spec in ["packet:lo", "packet-v2:lo,192.0.2.7/24"] {
            until_enough(|| open(spec));
        }
        return;
    }
    lab::test(|lab| {
        let test = "limits::a_raw_device_for_which_there_is_no_descriptor_names_the_limit";
        child::Child::start(test, "alone", Some(&lab.near)).end();
    });
}

fn two() -> [Shm; 2] {
    ["a", "b"].map(|end| {
        Shm::join(&format!("limits/{}/{end}", std::process::id())).expect("nobody has that name")
    })
}

/// Has `a` reach for `b` until there is an outcome; `between` is called when `b` has answered.
fn reach([a, b]: &mut [Shm; 2], between: impl FnOnce()) -> Result<(), String> {
    let (to, mut between) = (b.address().clone(), Some(between));
    loop {
        match a.reach(&to) {
            Ok(Some(_)) => return Ok(()),
            Err(why) => return Err(chain(&why)),
            Ok(None) => {}
        }
        b.arm(None).expect("it can be slept on");
        b.disarm();
        b.receive(&mut Nobody);
        if let Some(between) = between.take() {
            between();
        }
    }
}

/// Whoever called one that had no descriptor left waited for 5 seconds, and was told that it has
/// not answered.
#[test]
fn two_devices_for_whose_link_there_is_no_descriptor_name_the_limit() {
    child::alone(|| {
        for spare in 0..ENOUGH {
            let mut two = two();
            let all = all_but(spare);
            let reached = reach(&mut two, || {});
            drop(all);
            match reached {
                Ok(()) => {
                    assert!(spare > 1, "each side takes a descriptor at least");
                    break;
                }
                Err(why) => assert!(why.contains("ulimit -n"), "{spare} to spare: {why}"),
            }
            // And all is well as soon as there are some.
            assert_eq!(reach(&mut two, || {}), Ok(()));
        }
        // The one that called has none for the memory that it is sent.
        let (mut two, mut all) = (two(), vec![]);
        let why = reach(&mut two, || all = all_but(0)).expect_err("the memory comes by descriptor");
        drop(all);
        assert!(why.contains("RLIMIT_NOFILE"), "{why}");
        assert_eq!(reach(&mut two, || {}), Ok(()));
    });
}

/// SIGXFSZ ended the process without a word.
#[test]
fn memory_that_is_larger_than_files_may_be_is_an_error_that_names_the_limit() {
    child::alone(|| {
        limit_file_size(Some(64 << 10));
        let why = chain(&SharedMemory::new(1 << 20).expect_err("it is too large"));
        assert!(why.contains("RLIMIT_FSIZE") && why.contains("65536"), "{why}");
        SharedMemory::new(4096).expect("it is not too large");
        let why = chain(&Shm::pair().map(drop).expect_err("its rings are too large"));
        assert!(why.contains("RLIMIT_FSIZE"), "{why}");
        let mut two = two();
        let own: Address = two[0].address().clone();
        let why = chain(&two[0].reach(&own).expect_err("its ring is too large"));
        assert!(why.contains("RLIMIT_FSIZE"), "{why}");
        let why = reach(&mut two, || {}).expect_err("the other side may not make rings");
        assert!(why.contains("ulimit -f"), "{why}");
        // Who calls makes no memory, and may be limited.
        limit_file_size(None);
        assert_eq!(reach(&mut two, || limit_file_size(Some(64 << 10))), Ok(()));
    });
}

/// The error said no more than that memory can't be allocated.
#[test]
fn memory_for_which_there_are_no_addresses_is_an_error_that_names_the_limit() {
    child::alone(|| {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("proc");
        let pages = statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
        let most = 4096 * pages.expect("a number") + (64 << 20);
        limit_addresses(Some(most));
        let why = chain(&SharedMemory::reserve(1 << 30).expect_err("it is too long"));
        let says = ["mapping 1073741824 bytes", "(RLIMIT_AS)", "`ulimit -v`", &most.to_string()];
        assert!(says.iter().all(|says| why.contains(says)), "{why}");
        SharedMemory::reserve(1 << 20).expect("it is not too long");
        limit_addresses(None);
        SharedMemory::reserve(1 << 30).expect("there is no limit");
    });
}
