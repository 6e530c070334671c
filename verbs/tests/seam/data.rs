//! Data in the types that programs have: sent from where it is, and received where it will stay.

use bytes::{Bytes, BytesMut};
use doorbell_verbs::{Buf, Data, Imm, Memory, Message, QueuePair};

use crate::common::{Over, Runs, brief, connected, first, nics, run};

static MANY: [u8; 100] = [7; 100];

/// Returns what the far end gets of data by a message, a write, and a write with an immediate.
async fn delivered(data: impl Fn() -> Data) -> [Vec<u8>; 3] {
    let (near, far) = nics(Over::Shm, &brief());
    let (near, far) = connected(&near, &far).await;
    let len = data().len() as usize;
    let receive = far.pair.recv(Vec::with_capacity(200));
    let (sent, message) = tokio::join!(near.pair.send(data()), receive);
    sent.expect("it is received");
    let message = Vec::from(message.expect("it is sent").data);
    near.pair.write(data(), near.peer).await.expect("it may");
    let written = first(&far.memory, len);
    far.memory.write_at(0, &[0; 100]).expect("within");
    let receive = far.pair.recv(Vec::new());
    let (told, heard) = tokio::join!(near.pair.write_imm(data(), near.peer, Imm(1)), receive);
    told.expect("it may");
    assert_eq!(heard.expect("a write tells").len as usize, len);
    [message, written, first(&far.memory, len)]
}

#[test]
fn data_of_every_type_arrives() {
    run(Runs::CurrentThread, || async {
        let shared = Bytes::from(b"hello".to_vec());
        for (name, delivered) in [
            ("Vec", delivered(|| b"hello".to_vec().into()).await),
            ("Box", delivered(|| Box::<[u8]>::from(*b"hello").into()).await),
            ("Bytes", delivered(|| Bytes::from(b"hello".to_vec()).into()).await),
            ("shared Bytes", delivered(|| shared.clone().into()).await),
            ("BytesMut", delivered(|| BytesMut::from(&b"hello"[..]).into()).await),
            ("a static array", delivered(|| b"hello".into()).await),
            ("a static slice", delivered(|| b"hello"[..].into()).await),
            ("a static text", delivered(|| "hello".into()).await),
            ("String", delivered(|| String::from("hello").into()).await),
            ("Buf", delivered(|| Buf::from(b"hello").into()).await),
        ] {
            assert_eq!(delivered, [b"hello"; 3], "{name}");
        }
        assert_eq!(delivered(|| (&MANY).into()).await, [MANY; 3], "a long static array");
    });
}

/// Receives a message of five bytes into the given memory.
async fn receives(memory: impl Into<Memory>) -> Message {
    let (near, far) = nics(Over::Shm, &brief());
    let (near, far) = connected(&near, &far).await;
    let (sent, message) = tokio::join!(near.pair.send(b"hello"), far.pair.recv(memory));
    sent.expect("it is received");
    message.expect("it is sent")
}

#[test]
fn a_received_message_stays_in_the_buffer_that_was_posted() {
    run(Runs::CurrentThread, || async {
        let buffer = Vec::with_capacity(64);
        let place = buffer.as_ptr();
        let received = receives(buffer).await.data.into_bytes();
        assert_eq!((received.as_ptr(), &*received), (place, &b"hello"[..]));

        let buffer = BytesMut::with_capacity(64);
        let place = buffer.as_ptr();
        let received = BytesMut::from(receives(buffer).await.data);
        assert_eq!((received.as_ptr(), &*received), (place, &b"hello"[..]));

        // What a vector held is no part of what it is received into; its room is.
        let mut buffer = Vec::with_capacity(64);
        buffer.extend_from_slice(b"something longer");
        let place = buffer.as_ptr();
        let received = Vec::from(receives(buffer).await.data);
        assert_eq!((received.as_ptr(), &*received), (place, &b"hello"[..]));
    });
}

#[test]
fn sent_data_comes_back_without_a_copy_and_reads_fill_buffers_in_place() {
    async fn there_and_back(pair: &QueuePair, peer: doorbell_verbs::RemoteMemory) {
        let bytes = Bytes::from(b"hello".to_vec());
        let place = bytes.as_ptr();
        let back = Bytes::from(pair.write(bytes, peer).await.expect("it may"));
        assert_eq!((back.as_ptr(), &*back), (place, &b"hello"[..]));

        let back = pair.write(b"HELLO", peer).await.expect("it may");
        assert_eq!((back.len(), back.capacity()), (0, 0), "it travelled in the request");

        let room = Vec::with_capacity(5);
        let place = room.as_ptr();
        let read = Vec::from(pair.read(room, peer).await.expect("it may"));
        assert_eq!((read.as_ptr(), &*read), (place, &b"HELLO"[..]));
    }
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Shm, &brief());
        let (near, _far) = connected(&near, &far).await;
        there_and_back(&near.pair, near.peer).await;
    });
}
