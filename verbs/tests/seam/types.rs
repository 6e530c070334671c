//! The traits of public types that programs expect of any type.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

use doorbell_verbs::work::{CompareSwap, Datagram, FetchAdd, Read, Send as SendRequest, Write};
use doorbell_verbs::*;

use crate::common::{Over, Runs, SERVICE, brief, connected, names, nics, run};

/// Accepts values that are compared and copied.
fn is_value<T: Debug + Clone + PartialEq + Send + Sync + 'static>() {}
/// Accepts values that are keys of a map as well.
fn is_key<T: Debug + Clone + Eq + Hash + Send + Sync + 'static>() {}
/// Accepts values that have a text form, too.
fn is_text<T: Debug + Clone + Eq + Display + FromStr>() {}
/// Accepts types that are configurations of objects.
fn is_config<T: Debug + Clone + Eq + Hash>() {}
/// Accepts handles that any thread may have.
fn is_handle<T: Debug + Clone + Send + Sync + 'static>() {}
/// Accepts ends that one thread has at a time.
fn is_end<T: Debug + Send + 'static>() {}
fn is_error<T: std::error::Error + Send + Sync + 'static>() {}

#[test]
fn public_types_have_the_traits_that_programs_expect() {
    is_config::<Config>();
    is_config::<QueuePairConfig>();
    is_config::<QueuesConfig>();
    is_config::<DatagramsConfig>();
    is_config::<KeepAlive>();
    is_config::<Progress>();
    is_config::<Capabilities>();

    is_text::<Address>();
    is_text::<RemoteMemory>();
    is_text::<Rights>();
    is_text::<PathMtu>();
    is_text::<Qpn>();
    is_text::<ServiceId>();
    is_text::<Rkey>();
    is_text::<Qkey>();
    is_text::<Imm>();
    is_text::<RemoteAddr>();
    is_text::<CmPort>();
    is_text::<RnrRetryCount>();

    is_key::<Address>();
    is_key::<RemoteMemory>();
    is_key::<Rights>();
    is_key::<Qpn>();
    is_key::<ServiceId>();
    is_key::<Buf>();
    is_key::<Segment>();
    is_key::<Metadata>();
    is_key::<Attachment>();
    is_key::<Done>();
    is_key::<Private>();
    is_key::<CompletionQueueId>();
    is_key::<SharedReceiveQueueId>();
    is_key::<Side>();

    is_value::<Statistics>();
    is_value::<AsyncEvent>();
    is_value::<ConnectionState>();
    is_value::<Ending>();
    is_value::<Memory>();
    is_value::<Completion>();
    is_value::<Message>();
    is_value::<Failure>();
    is_value::<Cause>();

    is_handle::<Nic>();
    is_handle::<Domain>();
    is_handle::<Connection>();
    is_handle::<Registered>();
    is_handle::<Region>();
    is_handle::<Destination>();

    is_end::<QueuePair>();
    is_end::<Unconnected<QueuePair>>();
    is_end::<Unconnected<Queues>>();
    is_end::<Queues>();
    is_end::<SendQueue>();
    is_end::<ReceiveQueue>();
    is_end::<Batch<'static>>();
    is_end::<CompletionQueue>();
    is_end::<SharedReceiveQueue>();
    is_end::<Datagrams>();
    is_end::<Listener>();
    is_end::<Incoming>();
    is_end::<Mapped>();
    is_end::<SharedMemory>();
    is_end::<PrivateRegion>();
    is_end::<Data>();
    is_end::<Inline>();
    is_end::<WorkRequest>();
    is_end::<SendRequest>();
    is_end::<Write>();
    is_end::<Read>();
    is_end::<CompareSwap>();
    is_end::<FetchAdd>();
    is_end::<Datagram>();
    is_end::<Operation<'static>>();
    is_end::<Receive<'static>>();
    is_end::<NextCompletion<'static>>();

    is_error::<OpenError>();
    is_error::<ConnectError>();
    is_error::<Failed>();
    is_error::<FailedWhy>();
    is_error::<ListenRefused>();
    is_error::<RegisterError>();
    is_error::<RemoteMemoryError>();
    is_error::<PostReceiveError>();
    is_error::<Refused<WorkRequest>>();
    is_error::<ResourceError>();
    is_error::<AccessError>();
    is_error::<NotNumber>();
    is_error::<NotRights>();
    is_error::<NotPathMtu>();
    is_error::<MetadataTooLong>();
}

#[test]
fn a_key_of_memory_survives_encoding_and_decoding() {
    let memory = RemoteMemory::new(RemoteAddr(1), Rkey(2), 3);
    let bytes: [u8; RemoteMemory::ENCODED] = memory.into();
    assert_eq!(RemoteMemory::from(bytes), memory);
    assert_eq!(ServiceId::from(7), SERVICE);
}

#[test]
fn handles_to_the_same_object_are_equal() {
    let open = |name: &str| {
        Nic::builder().config(brief()).open_blocking(name).expect("nobody else has that name")
    };
    let [near, far] = names(Over::Shm);
    let (near, far) = (open(&near), open(&far));
    assert_eq!(near, near.clone());
    assert_ne!(near, far);
    let domain = near.domain();
    assert_eq!(domain, domain.clone());
    assert_ne!(domain, near.domain());
}

/// Debug output identifies an object, and shows nothing of the content of memory.
#[test]
fn debug_output_has_numbers_and_addresses_and_no_contents() {
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Shm, &brief());
        let address = near.address().to_string();
        let shows = |shown: String, has: &[&str]| {
            for part in has {
                assert!(shown.contains(part), "{shown} has no {part}");
            }
            assert!(!shown.contains("secret") && !shown.contains("115, 101, 99"), "{shown}");
        };
        shows(format!("{near:?}"), &[&address]);
        shows(format!("{:?}", near.domain()), &[&address]);
        let listener = near.listen(ServiceId(0xBE11)).await.expect("nobody else listens");
        shows(format!("{listener:?}"), &["0x000000000000be11", &address]);
        let completions = near.completion_queue(16).expect("a capacity");
        shows(format!("{completions:?}"), &["waiting: 0", &address]);
        let queues = near.domain().queues(&QueuesConfig::new(&completions)).expect("room");
        shows(format!("{queues:?}"), &[&format!("{:?}", queues.qpn()), &address]);
        let receives = near.domain().shared_receive_queue(16).expect("a depth");
        shows(format!("{receives:?}"), &["room: 16", &address]);

        let (one, other) = connected(&near, &far).await;
        let qpn = format!("{:?}", one.pair.qpn());
        shows(format!("{:?}", one.pair), &[&qpn, "Connected", &address]);
        shows(format!("{:?}", one.pair.connection()), &[&qpn, "Connected"]);
        shows(format!("{:?}", one.pair.receive()), &[&qpn]);
        let request = SendRequest::new(b"secret").id(7);
        shows(format!("{request:?}"), &["id: 7", "Inline(6 bytes)"]);
        shows(format!("{:?}", one.pair.perform(request)), &[&qpn, "id: 7"]);
        let (sent, message) = tokio::join!(
            one.pair.send(b"secret".to_vec()),
            other.pair.recv(Vec::with_capacity(8)),
        );
        shows(format!("{:?}", sent.expect("it is received")), &["Buf(6 of 6 bytes)"]);
        shows(format!("{:?}", message.expect("it is sent")), &["Buf(6 of 8 bytes)"]);
        drop(one);
        let over = other.pair.connection();
        over.ended().await;
        shows(format!("{over:?}"), &["Ended(PeerLeft"]);
    });
}
