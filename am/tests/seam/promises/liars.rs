//! A peer that says of its named handlers what is not so.

use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, Call, ConnectError, Endpoint, EndpointConfig, Handlers, Name,
};
use doorbell_verbs::{
    Attachment, Buf, CompletionQueue, Done, Memory, Queues, QueuesConfig, ServiceId,
};

use crate::promises::devices::Devices;
use crate::promises::hostile::hello;

const SOON: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(600);

/// The question which named handlers there are, and the reply to a question.
const NAMES: u64 = 6;
const REPLY: u32 = 1;

const DOUBLE: Call<u64, u64> = Call::new("double");

/// The bit of a greeting that says that no other endpoint can have the service number.
const UNIQUE: u8 = 1;

/// A false listing: for the number of bytes that the asking side knows, the length and more bytes.
type Lie = dyn Fn(u64) -> (u64, Vec<u8>);

/// A message as endpoints send them: its header, its words and its payload.
fn message(header: u32, words: &[u64], payload: &[u8]) -> Buf {
    let mut bytes = header.to_le_bytes().to_vec();
    bytes.extend((payload.len() as u32).to_le_bytes());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Buf::from(bytes)
}

/// Makes the entry of a handler in a listing.
fn entry(key: u64, place: u16, name: &str, types: &str) -> Vec<u8> {
    let mut bytes = key.to_le_bytes().to_vec();
    bytes.extend(place.to_le_bytes());
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend((types.len() as u16).to_le_bytes());
    bytes.extend(types.as_bytes());
    bytes
}

/// Answers what it is asked until the connection ends: which handlers there are by that.
async fn answer((mut queues, mut completions): (Queues, CompletionQueue), lie: &Lie) {
    loop {
        let done = tokio::select! {
            done = completions.completion() => done,
            _ = queues.connection.ended() => return,
        };
        // Sends complete here, too; and receives that the end of the connection gives back.
        let (Ok(Done::Received), Memory::Buf(received)) = (&done.outcome, done.memory) else {
            continue;
        };
        let (header, words) = match done.attached {
            Attachment::Imm(imm) => (imm.0, 0),
            _ => (u32::from_le_bytes(received[..4].try_into().expect("four")), 8),
        };
        let word = |at: usize| {
            let bytes = received[words + 8 * at..].first_chunk().expect("it has words");
            u64::from_le_bytes(*bytes)
        };
        let reply = match word(0) {
            NAMES => {
                let (len, listing) = lie(word(1));
                message(REPLY << 29 | 1 << 24 | header & 0xFF_FFFF, &[len], &listing)
            }
            _ => message(REPLY << 29 | header & 0xFF_FFFF, &[], &[]),
        };
        queues.receive.post(0, Buf::with_capacity(8192)).expect("room");
        queues.send.post(doorbell_verbs::work::Send::new(reply)).expect("room");
    }
}

#[tokio::test]
async fn a_false_listing_fails_the_connect_and_leaves_the_endpoint_whole() {
    let devices = Devices::shm(2);
    let bundle = Bundle::new(&devices.nics[0], &BundleConfig::default()).expect("room");
    let endpoint = Endpoint::on_bundle(&bundle, Handlers::new()).await.expect("room");
    let nic = &devices.nics[1];
    let mut listener = nic.listen(ServiceId(9)).await.expect("nobody else listens");
    let name = Name::at(nic.address().to_string(), 9);
    let lies: [(&str, &Lie); 7] = [
        ("nothing of much", &|_| (100, Vec::new())),
        ("more than a listing has", &|_| (u64::MAX, vec![0; 64])),
        ("more than it says", &|_| (8, vec![0; 64])),
        ("more handlers than a table has", &|known| {
            let many = entry(7, 0, "", "").repeat(5000);
            let more = &many[known as usize..];
            (many.len() as u64, more[..more.len().min(4096)].to_vec())
        }),
        ("no entries", &|_| (64, vec![0xFF; 64])),
        ("an entry that is cut off", &|_| {
            let cut = entry(7, 0, "add", "a call").split_off(1);
            (cut.len() as u64, cut)
        }),
        ("a place beyond the table", &|_| {
            let beyond = entry(7, 4095, "add", "a call");
            (beyond.len() as u64, beyond)
        }),
    ];
    for (what, lie) in lies {
        let completions = nic.completion_queue(64).expect("room");
        let mut own = nic.domain().queues(&QueuesConfig::new(&completions)).expect("room");
        (0..16).for_each(|_| own.post_receive(0, Buf::with_capacity(8192)).expect("room"));
        let lies = async {
            let accepted = own.accept(listener.accept().await.expect("a request"), &hello()).await;
            answer((accepted.expect("it is asked").0, completions), lie).await;
        };
        let (connected, ()) = tokio::join!(endpoint.connect(&name), lies);
        let why = connected.err().unwrap_or_else(|| panic!("{what} is believed"));
        assert!(matches!(why, ConnectError::Lost { .. }), "{what}: {why}");
        let why = why.to_string();
        assert!(why.ends_with("its answer is no listing of handlers"), "{what}: {why}");
    }
}

/// Connects as a peer that says the service number of another endpoint, and answers what is asked
/// over that connection meanwhile.
async fn connects_in_the_name_of_another(devices: Devices) {
    let open = async |nic| {
        let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
        let handlers = Handlers::new().on(DOUBLE, |_, number| 2 * number);
        Endpoint::on_bundle(&bundle, handlers).await.expect("room")
    };
    let [asks, named, false_one] = &devices.nics[..] else { unreachable!("three") };
    let (asks, named) = (open(asks).await, open(named).await);
    let completions = false_one.completion_queue(64).expect("room");
    let config = QueuesConfig::new(&completions);
    let mut own = false_one.domain().queues(&config).expect("room");
    (0..16).for_each(|_| own.post_receive(0, Buf::with_capacity(8192)).expect("room"));
    let mut said = hello();
    said[3] |= UNIQUE;
    said[4..12].copy_from_slice(&named.name().service().0.to_be_bytes());
    let connected =
        own.connect(Name::at(asks.name().address(), asks.name().service().0), &said).await;
    let answers = answer((connected.expect("all are admitted").0, completions), &|_| (0, vec![]));
    let connects = async {
        let peer = asks.connect(named.name()).await.expect("the one of that name is there");
        assert_eq!(peer.call(DOUBLE, 21).await.expect("it is alive"), 42);
    };
    tokio::select! {
        () = answers => panic!("the connection of the false one ended"),
        () = connects => {}
    }
}

#[tokio::test]
async fn a_peer_that_says_the_service_number_of_another_is_not_connected_to_in_its_place() {
    connects_in_the_name_of_another(Devices::udp(3)).await;
    connects_in_the_name_of_another(Devices::shm(3)).await;
}

#[tokio::test]
async fn a_peer_that_does_not_say_which_handlers_it_has_is_given_up() {
    let devices = Devices::shm(2);
    let bundle = Bundle::new(&devices.nics[0], &BundleConfig::default()).expect("room");
    for (deadline, patience) in [(Some(SOON), LONG), (None, SOON)] {
        let config = EndpointConfig { deadline, patience, ..EndpointConfig::default() };
        let endpoint = Endpoint::builder()
            .config(config)
            .on_bundle(&bundle, Handlers::new())
            .await
            .expect("room");
        let nic = &devices.nics[1];
        let mut listener = nic.listen(ServiceId(9)).await.expect("nobody else listens");
        let name = Name::at(nic.address().to_string(), 9);
        let completions = nic.completion_queue(64).expect("room");
        let mut own = nic.domain().queues(&QueuesConfig::new(&completions)).expect("room");
        (0..16).for_each(|_| own.post_receive(0, Buf::with_capacity(8192)).expect("room"));
        let accepts =
            async { own.accept(listener.accept().await.expect("a request"), &hello()).await };
        let (connected, _stands) = tokio::join!(endpoint.connect(&name), accepts);
        let why = connected.expect_err("it says nothing");
        assert!(matches!(why, ConnectError::Lost { .. }), "{why}");
    }
}
