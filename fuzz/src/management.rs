//! The connection manager's messages: what parses is a value that survives being sent.

use doorbell_core::wire::Malformed;
use doorbell_core::wire::cm::{
    Drep, Dreq, IpCm, Mad, Message, Mra, Rej, Rep, Req, Rtu, SidrRep, SidrReq,
};

use super::check::{can_be_shown, inside, is_rest};

const ATTRIBUTES: [u8; 9] = [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];

/// Parses a management datagram: as it stands, and once more with a header that is valid.
pub fn mad(data: &[u8]) {
    let as_it_stands = Mad::parse(data);
    check(data, as_it_stands);
    let (Err(_), Some(first)) = (as_it_stands, data.first_chunk::<{ Mad::LEN }>()) else { return };
    let mut headed = *first;
    headed[..4].copy_from_slice(&[1, 7, 2, 3]);
    headed[16..18].copy_from_slice(&[0, ATTRIBUTES[usize::from(first[17]) % ATTRIBUTES.len()]]);
    let parsed = Mad::parse(&headed);
    let only_a_length = matches!(parsed, Ok(_) | Err(Malformed::Length { .. }));
    assert!(only_a_length, "nothing else of a message is judged: {parsed:?}");
    check(&headed, parsed);
}

fn check(data: &[u8], parsed: Result<Mad<'_>, Malformed>) {
    can_be_shown(&parsed);
    let Ok(mad) = parsed else { return };
    borrowed(data, &mad.message);
    // What was there before must not shine through.
    let (mut once, mut twice) = ([0xA5; Mad::LEN], [0x5A; Mad::LEN]);
    mad.emit(&mut once);
    let again = Mad::parse(&once).expect("what was emitted parses");
    assert_eq!(again, mad);
    again.emit(&mut twice);
    assert_eq!(once, twice);
}

/// Asserts that a message's private data lies in the datagram, and has the length that the message
/// has room for.
fn borrowed(data: &[u8], message: &Message<'_>) {
    let (private, room) = match message {
        Message::Req(m) => (m.private.as_bytes(), Req::PRIVATE_DATA),
        Message::Mra(m) => (m.private.as_bytes(), Mra::PRIVATE_DATA),
        Message::Rej(m) => (m.private.as_bytes(), Rej::PRIVATE_DATA),
        Message::Rep(m) => (m.private.as_bytes(), Rep::PRIVATE_DATA),
        Message::Rtu(m) => (m.private.as_bytes(), Rtu::PRIVATE_DATA),
        Message::Dreq(m) => (m.private.as_bytes(), Dreq::PRIVATE_DATA),
        Message::Drep(m) => (m.private.as_bytes(), Drep::PRIVATE_DATA),
        Message::SidrReq(m) => (m.private.as_bytes(), SidrReq::PRIVATE_DATA),
        Message::SidrRep(m) => (m.private.as_bytes(), SidrRep::PRIVATE_DATA),
    };
    assert_eq!(private.len(), room);
    assert_eq!(inside(data, private) + room, Mad::LEN);
    match message {
        Message::Req(m) => can_be_shown(&m.ip_cm()),
        Message::SidrReq(m) => can_be_shown(&m.ip_cm()),
        Message::Rej(m) => drop(inside(data, m.info.as_bytes())),
        Message::SidrRep(m) => drop(inside(data, m.info.as_bytes())),
        _ => {}
    }
}

/// The IP addressing in front of private data.
pub fn ip_cm(data: &[u8]) {
    let parsed = IpCm::parse(data);
    can_be_shown(&parsed);
    let Ok((addressing, application)) = parsed else { return };
    assert_eq!(is_rest(data, application, IpCm::LEN), 0);
    let bytes = addressing.to_bytes();
    let (again, rest) = IpCm::parse(&bytes).expect("what was emitted parses");
    assert_eq!((again, rest), (addressing, &[][..]));
    assert_eq!(again.to_bytes(), bytes);

    let limit = Req::PRIVATE_DATA - IpCm::LEN;
    match addressing.before::<{ Req::PRIVATE_DATA }>(application) {
        Ok(private) => {
            let (again, rest) = IpCm::parse(&private).expect("what was emitted parses");
            assert_eq!(again, addressing);
            let (said, zeros) = rest.split_at(application.len());
            assert_eq!(said, application);
            assert!(zeros.iter().all(|&byte| byte == 0));
        }
        Err(too_long) => {
            assert_eq!((too_long.given, too_long.limit), (application.len(), limit));
            assert!(application.len() > limit);
        }
    }
}
