//! Serialised values, in the forms in which programs keep them or pass them on.

use std::fmt::Debug;
use std::time::Duration;

use doorbell_verbs::{
    Address, CmPort, Config, Imm, KeepAlive, Nic, PathMtu, Progress, Qkey, Qpn, QueuePairConfig,
    RemoteAddr, RemoteMemory, Rights, Rkey, RnrRetryCount, ServiceId, Statistics,
};
use serde_json::json;

use crate::common::{Over, names};

/// Returns a value as JSON, and checks that the same value comes back.
#[track_caller]
fn there_and_back<T>(value: T) -> serde_json::Value
where
    T: serde::Serialize + for<'de> serde::Deserialize<'de> + PartialEq + Debug,
{
    let text = serde_json::to_string(&value).expect("it is serialised");
    let again: T = serde_json::from_str(&text).expect("it was just written");
    assert_eq!(again, value, "{text}");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn numbers_are_serialised_as_numbers_and_values_with_a_text_form_as_text() {
    assert_eq!(there_and_back(Qpn::new(7)), json!(7));
    assert_eq!(there_and_back(ServiceId(u64::MAX)), json!(u64::MAX));
    assert_eq!(there_and_back(Rkey(7)), json!(7));
    assert_eq!(there_and_back(Qkey(7)), json!(7));
    assert_eq!(there_and_back(Imm(7)), json!(7));
    assert_eq!(there_and_back(RemoteAddr(7)), json!(7));
    assert_eq!(there_and_back(CmPort(7)), json!(7));
    assert_eq!(there_and_back(RnrRetryCount::INFINITE), json!(7));
    assert_eq!(there_and_back(PathMtu::Mtu1024), json!(1024));
    let rights = Rights::REMOTE_WRITE | Rights::REMOTE_READ;
    assert_eq!(there_and_back(rights), json!("remote-write|remote-read"));
    for text in ["udp:192.0.2.1:5000", "packet:02:00:5e:10:00:01", "shm:job/0"] {
        assert_eq!(there_and_back::<Address>(text.parse().expect("an address")), json!(text));
    }
}

#[test]
fn text_that_is_no_value_of_its_type_is_refused_with_the_reason() {
    let why = |outcome: Result<(), serde_json::Error>| outcome.expect_err("no value").to_string();
    let qpn = why(serde_json::from_str::<Qpn>("16777216").map(drop));
    assert!(qpn.contains("`16777216` is no Qpn"), "{qpn}");
    let mtu = why(serde_json::from_str::<PathMtu>("1500").map(drop));
    assert!(mtu.contains("`1500` is no path MTU"), "{mtu}");
    let rights = why(serde_json::from_str::<Rights>(r#""remote""#).map(drop));
    assert!(rights.contains("`remote` is no right"), "{rights}");
    let address = why(serde_json::from_str::<Address>(r#""nowhere""#).map(drop));
    assert!(address.contains("`nowhere` names no device"), "{address}");
    let config = why(serde_json::from_str::<Config>(r#"{"queue_pair": 7}"#).map(drop));
    assert!(config.contains("unknown field `queue_pair`"), "{config}");
}

#[test]
fn a_configuration_is_serialised_whole_and_read_with_what_it_does_not_say_as_by_default() {
    there_and_back(Config::default());
    there_and_back(Config {
        progress: Progress::Dedicated { core: Some(3) },
        spin: Duration::MAX,
        seed: Some(u64::MAX),
        ..Config::default()
    });
    there_and_back(QueuePairConfig { send_depth: 7, ..QueuePairConfig::default() });
    let written = json!({
        "progress": { "dedicated": {} },
        "queue_pairs": 7,
        "keep_alive": { "busy": { "secs": 3, "nanos": 0 } },
    });
    let read: Config = serde_json::from_value(written).expect("a part of a configuration");
    let busy = Duration::from_secs(3);
    let expected = Config {
        progress: Progress::Dedicated { core: None },
        queue_pairs: 7,
        keep_alive: KeepAlive { busy, ..KeepAlive::default() },
        ..Config::default()
    };
    assert_eq!(read, expected);
    let read: Config = serde_json::from_value(json!({ "progress": "inline" })).expect("a part");
    assert_eq!(read, Config::default());
}

#[test]
fn statistics_of_a_nic_are_serialised_and_those_of_another_version_are_read() {
    let [name, _] = names(Over::Shm);
    let nic = Nic::builder().open_blocking(&name).expect("nobody else has that name");
    let _domain = nic.domain();
    let counted = there_and_back(nic.statistics());
    assert_eq!(counted["objects"]["completion_queues"], json!(1));
    let older = json!({ "nic": { "received": 7, "a_count_that_is_no_more": 8 } });
    let read: Statistics = serde_json::from_value(older).expect("statistics");
    assert_eq!((read.nic.received, read.device.frames_sent), (7, 0));
    serde_json::to_string(nic.capabilities()).expect("capabilities are serialised");
}

/// Numbers survive that a format with floating point would round.
#[test]
fn a_key_that_was_serialised_names_the_same_memory() {
    for (address, rkey, len) in
        [(0, 0, 0), (0x7f00_1234_5000, 0x8c0f_fee1, 4096), (u64::MAX, u32::MAX, u64::MAX - 1)]
    {
        let memory = RemoteMemory::new(RemoteAddr(address), Rkey(rkey), len);
        let text = serde_json::to_string(&memory).expect("it is plain numbers");
        let again: RemoteMemory = serde_json::from_str(&text).expect("it was just written");
        assert_eq!((again, again.address().0, again.rkey().0), (memory, address, rkey), "{text}");
        assert_eq!(again.len(), len, "{text}");
    }
}

/// Values that other versions of a program have written can be read.
#[test]
fn the_fields_of_a_key_that_is_serialised_keep_their_names() {
    let text = r#"{"address":139638282145792,"rkey":2349858529,"len":4096}"#;
    let memory: RemoteMemory = serde_json::from_str(text).expect("it is a key");
    assert_eq!(memory.to_string(), "7f0012345000+4096@8c0ffee1");
    assert_eq!(serde_json::to_string(&memory).expect("it is plain numbers"), text);
    let partial = r#"{"address":1,"len":4096}"#;
    let why = serde_json::from_str::<RemoteMemory>(partial).expect_err("it has no key");
    assert!(why.to_string().contains("missing field `rkey`"), "{why}");
}
