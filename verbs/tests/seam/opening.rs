//! NICs that can't be opened, and tables that are full: what was tried, what was found, and what to
//! do.

use doorbell_kit::{chain, child, lab, limit_descriptors};
use doorbell_transports::DeviceError;
use doorbell_transports::sharing::{Membership, SERVICES, SharingError};
use doorbell_verbs::{
    Config, ConnectError, ListenRefused, Name, Nic, OpenError, Progress, QueuePairConfig,
    QueuesConfig, Region, RegisterError, ResourceError, Rights, ServiceId,
};

use crate::common::{CABLE, Over, Runs, SERVICE, address, brief, dedicated, names, nics, run};
use crate::errors::says;

fn refused(name: &str) -> OpenError {
    Nic::builder().config(brief()).open_blocking(name).expect_err("it can't be opened")
}

#[test]
fn the_error_for_a_name_of_no_device_says_what_names_are_valid() {
    for name in [
        "elsewhere",
        "tcp:127.0.0.1",
        "",
        "udp",
        "udp:127.0.0.300",
        "udp:localhost:65536",
        "packet",
        "packet-v2:",
        "packet-v2:eth0,192.0.2.7",
    ] {
        let why = refused(name);
        assert!(matches!(why, OpenError::Spec(_)), "{why:?}");
        says(&why, &[&format!("`{name}`")]);
    }
    says(&refused("elsewhere"), &["names no device", "shm:", "udp:", "packet:", "packet-v2:"]);
    says(&refused("udp"), &["an IP address or a host name", "as in udp:192.0.2.7:5000"]);
    says(&refused("packet:"), &["the name of an interface (`ip link` lists them)"]);
    says(&refused("packet-v2:eth0,192.0.2.7"), &["`192.0.2.7` is no address in a network"]);
}

/// Regression test for a bug: the error for a shared interface did not say what to do.
#[test]
fn an_interface_or_address_that_this_machine_lacks_is_named_with_how_to_find_what_there_is() {
    for device in ["packet", "packet-v2"] {
        let why = refused(&format!("{device}:nonesuch0"));
        // Whichever looks for it first: the device, or what its processes share.
        let missing = matches!(
            why,
            OpenError::Device(DeviceError::NoInterface { .. })
                | OpenError::Sharing(SharingError::NoInterface { .. })
        );
        assert!(missing, "{why:?}");
        says(&why, &["interface", "`nonesuch0`", "`ip link` lists what there is: ", "lo"]);
    }
    // For documentation, and so nobody's.
    let why = refused("udp:192.0.2.7");
    assert!(matches!(why, OpenError::Device(DeviceError::NoAddress { .. })), "{why:?}");
    says(
        &why,
        &["udp: 192.0.2.7 is no address of this machine's", "`ip address` lists", "127.0.0.1"],
    );
}

/// With a few descriptors to spare, some step of opening fails, and the error names the limit.
/// Regression test for a bug: the error once said that 127.0.0.1 is no address of this machine's.
#[test]
fn the_error_for_a_nic_without_descriptors_names_the_limit() {
    child::alone(|| {
        limit_descriptors(256);
        for name in [&names(Over::Udp)[0], &names(Over::Shm)[0]] {
            let opened = (0..32).find_map(|spare| {
                let another = || std::fs::File::open("/dev/null").ok();
                let mut all: Vec<_> = std::iter::from_fn(another).collect();
                all.truncate(all.len() - spare);
                let opened = Nic::builder().config(brief()).open_blocking(name);
                drop(all);
                opened
                    .map_err(|why| {
                        says(&chain(&why), &["all of the 256 file descriptors", "ulimit -n"]);
                    })
                    .ok()
            });
            assert!(opened.is_some(), "32 are not enough for {name}");
        }
    });
}

#[test]
fn a_name_that_shared_memory_can_not_have_is_refused_with_what_it_may_be() {
    for (name, says_why) in [
        (&*format!("shm:{}", "n".repeat(91)), "it has 91 bytes, and may have 1 to 90"),
        ("shm:job\n", r"`job\n` can't be a name: it has '\n', and may have no control characters"),
    ] {
        let why = refused(name);
        assert!(matches!(why, OpenError::Device(DeviceError::Name { .. })), "{why:?}");
        says(&why, &[says_why]);
    }
}

#[test]
fn the_error_for_a_name_or_address_of_another_nic_says_that_it_is_taken() {
    for over in [Over::Shm, Over::Udp] {
        let first = Nic::builder()
            .config(brief())
            .open_blocking(&names(over)[0])
            .expect("nobody else has it");
        let name = address(&first);
        let why = refused(&name);
        assert!(matches!(why, OpenError::Device(DeviceError::Taken { .. })), "{why:?}");
        let what = name.split_once(':').expect("it begins with its kind").1;
        says(&why, &[what, "is taken"]);
        drop(first);
        Nic::builder().config(brief()).open_blocking(&name).expect("it is free again");
    }
}

/// The name is free again, too.
#[test]
fn a_processor_that_this_machine_lacks_is_refused_to_a_nic_of_its_own_thread() {
    let name = &names(Over::Shm)[0];
    for core in [1023, 1 << 20] {
        let progress = Progress::Dedicated { core: Some(core) };
        let why = Nic::builder()
            .config(Config { progress, ..brief() })
            .open_blocking(name)
            .expect_err("nobody has so many");
        assert!(matches!(why, OpenError::System { .. }), "{why:?}");
        says(&why, &["giving it a thread of its own"]);
    }
    Nic::builder().config(brief()).open_blocking(name).expect("nobody has it");
}

#[test]
fn a_table_that_is_full_says_how_many_it_holds_and_what_to_do_until_there_is_room() {
    let config = Config { queue_pairs: 2, registrations: 2, ..brief() };
    run(Runs::CurrentThread, move || async move {
        let (near, far) = nics(Over::Shm, &config);
        let domain = near.domain();
        let pair = || domain.queue_pair(&QueuePairConfig::default());
        let pairs = (pair().expect("room"), pair().expect("room"));
        let why = pair().map(drop).expect_err("both are taken");
        assert_eq!(why, ResourceError::QueuePairsFull(2));
        says(&why, &["all 2 queue pairs of this NIC are taken: take some down, or configure more"]);
        let queue = near.completion_queue(16).expect("a size");
        let queues = domain.queues(&QueuesConfig::new(&queue)).map(drop);
        assert_eq!(queues, Err(ResourceError::QueuePairsFull(2)));
        let why =
            domain.connect(Name::at(&*address(&far), SERVICE.0)).await.expect_err("both are taken");
        assert!(matches!(why, ConnectError::Resource(_)), "{why:?}");
        says(&why, &["all 2 queue pairs of this NIC are taken"]);
        drop(pairs);
        while near.statistics().objects.queue_pairs > 0 {
            tokio::task::yield_now().await;
        }
        pair().map(drop).expect("they are free again");

        let register = || domain.register(Region::new(8), Rights::REMOTE);
        let memory = (register().expect("room"), register().expect("room"));
        let why = register().expect_err("both are taken");
        assert!(matches!(why, RegisterError::Full(_)), "{why:?}");
        says(&why, &["all 2 registrations", "deregister some, or configure more"]);
        memory.0.revoke().await.expect("it was not before");
        register().expect("one is free again");
    });
}

/// The peer has no room, and tells the asking side at once, which need not wait.
#[test]
fn a_connection_is_refused_if_there_is_no_room_for_a_queue_pair() {
    run(Runs::CurrentThread, || async {
        let [here, there] = names(Over::Shm);
        let near = Nic::builder().config(brief()).open(&here).await.expect("nobody else has it");
        let far = Nic::builder().config(Config { queue_pairs: 1, ..brief() }).open(&there).await;
        let far = far.expect("nobody else has it");
        let (asks, takes) = (near.domain(), far.domain());
        let _taken = takes.queue_pair(&QueuePairConfig::default()).expect("room");
        let mut listener = far.listen(SERVICE).await.expect("nobody else does");
        let accepts = async { listener.accept().await.expect("a request").accept(&takes).await };
        let (asked, accepted) = tokio::join!(asks.connect(Name::at(&*there, SERVICE.0)), accepts);
        says(&accepted.expect_err("no room"), &["all 1 queue pairs of this NIC are taken"]);
        says(&asked.expect_err("no room"), &[" refused a connection to service "]);
    });
}

#[test]
fn a_queue_of_no_entries_or_too_few_is_refused_with_how_many_it_needs() {
    let (near, _far) = nics(Over::Shm, &brief());
    let domain = near.domain();
    for entries in [0, usize::MAX] {
        let why = near.completion_queue(entries).map(drop).expect_err("no size");
        assert_eq!(why, ResourceError::Depth(entries));
        says(&why, &[&format!("a queue of {entries} entries: it must have from 1 to")]);
        let why = domain.shared_receive_queue(entries).map(drop).expect_err("no size");
        assert_eq!(why, ResourceError::Depth(entries));
    }
    let queue = near.completion_queue(1).expect("a size");
    let why = domain.queues(&QueuesConfig::new(&queue)).map(drop).expect_err("too few");
    says(&why, &["has 1 entries, and needs 2: one a receive queue, one for sends"]);
}

/// The owner of the interface is stopped, as a debugger would stop it.
#[test]
fn a_nic_of_an_interface_whose_processes_do_not_answer_is_not_opened_and_says_how_to_find_them() {
    lab::test(|lab| {
        lab.loopback(CABLE[0], CABLE[1], 1500).expect("a lab has cables");
        let mut stopped = Membership::of_interface(CABLE[0]).expect("it is there");
        while !stopped.is_owner() {
            stopped.turn();
        }
        let why = refused(&names(Over::Packet)[0]);
        assert!(matches!(why, OpenError::Alone(_)), "{why:?}");
        says(&why, &["sharing `", "the owner has not answered yet", "a process there has stopped"]);
        drop(stopped);
        Nic::builder()
            .config(brief())
            .open_blocking(&names(Over::Packet)[0])
            .expect("nobody is in the way any more");
    });
}

#[test]
fn a_service_that_another_process_of_the_interface_listens_to_is_said_to_be_taken() {
    lab::test(|lab| {
        lab.loopback(CABLE[0], CABLE[1], 1500).expect("a lab has cables");
        for config in [brief(), dedicated()] {
            // While the other is opened, the one goes on elsewhere.
            run(Runs::MultiThread, move || async move {
                // To each other, two of one process are as two of two.
                let open = || {
                    Nic::builder()
                        .config(config.clone())
                        .open_blocking(&names(Over::Packet)[0])
                        .expect("room")
                };
                let (one, other) = (open(), open());
                let listener = one.listen(SERVICE).await.expect("nobody else does");
                let why = other.listen(SERVICE).await.map(drop).expect_err("the other one does");
                assert!(matches!(why, ListenRefused::Taken(SERVICE)), "{why:?}");
                says(&why, &["service ", "7 is listened to by another process of this interface"]);
                drop(listener);
                // The other one hears of that when it comes round to it.
                while other.listen(SERVICE).await.is_err() {
                    tokio::task::yield_now().await;
                }
            });
        }
    });
}

#[test]
fn a_process_of_an_interface_listens_to_so_many_services_and_is_told_when_there_is_no_room() {
    lab::test(|lab| {
        lab.loopback(CABLE[0], CABLE[1], 1500).expect("a lab has cables");
        run(Runs::CurrentThread, || async {
            let nic = Nic::builder()
                .config(brief())
                .open(&names(Over::Packet)[0])
                .await
                .expect("nobody else is there");
            let mut listeners = Vec::new();
            for number in 0..SERVICES as u64 {
                listeners.push(nic.listen(ServiceId(number)).await.expect("there is room"));
            }
            let beyond = ServiceId(SERVICES as u64);
            let why = nic.listen(beyond).await.map(drop).expect_err("there is no room");
            assert!(matches!(why, ListenRefused::Service(_)), "{why:?}");
            says(&why, &["beyond the 256 of a process", "stop listening to some"]);
            listeners.pop();
            nic.listen(beyond).await.map(drop).expect("one was stopped");
        });
    });
}
