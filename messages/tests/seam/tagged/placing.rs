//! Messages that are received into memory of the program: slices, pieces, and parts of regions.

use bytes::{Bytes, BytesMut};
use doorbell_messages::{Endpoint, Match, ReceiveError, RegionPart};
use doorbell_simulation::Luck;
use doorbell_verbs::Region;

use crate::ends::{Ends, Pair, body, check};

/// The lengths of bodies: words, payloads, some of several packets, and some that are pulled.
const LENGTHS: [usize; 9] = [0, 1, 8, 111, 113, 3000, 32_768, 100_003, (1 << 20) + 5];

/// What the memory contains before a message comes.
const BEFORE: u8 = 0xb7;

/// Two parts of a region that have room for `len` bytes, of which the first ends within a word.
fn two_parts(len: usize) -> (Region, Vec<RegionPart>) {
    let region = Region::from_bytes(&vec![BEFORE; len + 60]);
    let first = len / 3;
    let ranges = [5..5 + first, 5 + first + 17..5 + 17 + len];
    let parts = ranges.map(|range| RegionPart::new(&region, range).expect("it is within"));
    (region, parts.into())
}

/// Checks that parts have a body, and that nothing was written around them.
#[track_caller]
fn check_parts(region: &Region, parts: &[RegionPart], body: &[u8]) {
    let mut bytes = vec![0; region.len()];
    region.read_at(0, &mut bytes).expect("it is within");
    let (mut found, mut behind) = (Vec::new(), 0);
    for part in parts {
        let range = part.begin()..part.begin() + part.len();
        assert!(bytes[behind..range.start].iter().all(|&byte| byte == BEFORE));
        behind = range.end;
        found.extend_from_slice(&bytes[range]);
    }
    assert!(bytes[behind..].iter().all(|&byte| byte == BEFORE));
    let (found, rest) = found.split_at(body.len());
    assert!(found == body, "{} bytes have come as others", body.len());
    assert!(rest.iter().all(|&byte| byte == BEFORE));
}

/// A body in three pieces of memory, which end elsewhere than those of the receiver.
fn in_pieces(body: &Bytes) -> Vec<Bytes> {
    let (one, two) = (body.len() / 7, body.len() / 2);
    vec![body.slice(..one), body.slice(one..two), body.slice(two..)]
}

pub async fn bodies_come_into_slices_pieces_and_regions(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for (number, len) in (0..).zip(LENGTHS) {
        let (of, sent) = (Match::exactly(number), body(number, len));
        let mut slice = vec![BEFORE; len + 3];
        let into_slice = far.receive_into(&mut slice[..], of);
        let pieces = [len / 3, len].map(BytesMut::with_capacity);
        let into_pieces = far.receive_into(pieces, of);
        let (region, parts) = two_parts(len);
        let into_parts = far.receive_into(parts.clone(), of);
        let whole = Region::new(len);
        let into_whole = far.receive_into(RegionPart::from(&whole), of);

        let sends = [0; 4].map(|_| peer.send(number, in_pieces(&sent)));
        let received = into_slice.await.expect("it was sent");
        assert_eq!((received.bits, received.len, received.into.len()), (number, len, len + 3));
        assert_eq!(received.from.name().as_ref(), Some(_near.name()));
        assert!(slice[..len] == sent && slice[len..] == [BEFORE; 3]);
        let received = into_pieces.await.expect("it was sent");
        assert!(received.len == len && received.into.concat() == sent);
        assert_eq!(into_parts.await.expect("it was sent").len, len);
        check_parts(&region, &parts, &sent);
        assert_eq!(into_whole.await.expect("it was sent").len, len);
        check_parts(&whole, &[RegionPart::from(&whole)], &sent);
        for send in sends {
            send.await.expect("it was received");
        }
    }
}

pub async fn bodies_that_were_there_before_come_into_memory_too(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for (number, len) in (0..).zip(LENGTHS) {
        let (of, sent) = (Match::exactly(number), body(number, len));
        let sends = [0; 2].map(|_| peer.send(number, sent.clone()));
        let behind = peer.send(1000, "behind");
        far.receive(Match::exactly(1000)).await.expect("it was sent");
        let mut slice = vec![BEFORE; len];
        assert_eq!(far.receive_into(&mut slice[..], of).await.expect("it was sent").len, len);
        assert!(slice == sent);
        let (region, parts) = two_parts(len + 4);
        assert_eq!(far.receive_into(parts.clone(), of).await.expect("it was sent").len, len);
        check_parts(&region, &parts, &sent);
        for send in sends.into_iter().chain([behind]) {
            send.await.expect("it was received");
        }
    }
}

pub async fn a_message_longer_than_the_memory_is_an_error_and_writes_nothing(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for len in LENGTHS.into_iter().filter(|&len| len > 0) {
        let room = len - 1;
        let truncated = ReceiveError::Truncated { bits: 3, len, room };
        let mut slice = vec![BEFORE; room];
        let into_slice = far.receive_into(&mut slice[..], Match::exactly(3));
        let (region, parts) = two_parts(room);
        let into_parts = far.receive_into(parts.clone(), Match::exactly(3));
        let sends = [0; 2].map(|_| peer.send(3, body(3, len)));
        assert_eq!(into_slice.await.expect_err("it is longer"), truncated);
        assert_eq!(into_parts.await.expect_err("it is longer"), truncated);
        assert!(slice.iter().all(|&byte| byte == BEFORE));
        check_parts(&region, &parts, &[]);
        for send in sends {
            send.await.expect("a receive has taken it");
        }
    }
}

pub async fn messages_of_dropped_receives_into_memory_are_not_lost(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let mut luck = Luck::new(7);
    for number in 0..30 {
        let len = [100, 100_000, 600_000][number as usize % 3];
        let (region, parts) = two_parts(len);
        let dropped = far.receive_into(parts, Match::any());
        let sent = peer.send(number, body(number, len));
        for _ in 0..luck.below(40) {
            tokio::task::yield_now().await;
        }
        drop(dropped);
        if number % 2 == 0 {
            let message = far.receive(Match::any()).await.expect("it was sent");
            check(&message, number, len);
        } else {
            let (region, parts) = two_parts(len);
            let received = far.receive_into(parts.clone(), Match::any()).await.expect("it is sent");
            assert_eq!((received.bits, received.len), (number, len));
            check_parts(&region, &parts, &body(number, len));
        }
        sent.await.expect("it is sent");
        drop(region);
    }
}

// A pull that had not begun, or was under way, wrote into the region behind the drop, and over what
// the program had put there since.
pub async fn memory_of_a_dropped_receive_is_not_written_any_more(ends: Ends) {
    let builder = || Endpoint::builder().block(20_000);
    let (near, far) = (ends.open(0, builder()).await, ends.open(1, builder()).await);
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    let (region, mut luck) = (Region::new(400_000), Luck::new(3));
    for number in 0..40 {
        let dropped = far.receive_into(RegionPart::from(&region), Match::exactly(number));
        let sent = peer.send(number, body(number, region.len()));
        for _ in 0..luck.below(60) {
            tokio::task::yield_now().await;
        }
        drop(dropped);
        region.write_at(0, &vec![BEFORE; region.len()]).expect("it is within");
        check(&far.receive(Match::any()).await.expect("it was sent"), number, region.len());
        sent.await.expect("it is sent");
        check_parts(&region, &[RegionPart::from(&region)], &[]);
    }
}

pub async fn a_body_comes_into_thousands_of_parts_of_a_region(ends: Ends) {
    const PARTS: usize = 9000;
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let region = Region::from_bytes(&vec![BEFORE; 6 * PARTS]);
    let part = |at| RegionPart::new(&region, 6 * at..6 * at + 5).expect("it is within");
    let parts: Vec<_> = (0..PARTS).map(part).collect();
    let received = far.receive_into(parts.clone(), Match::any());
    let sent = peer.send(1, body(1, 5 * PARTS));
    assert_eq!(received.await.expect("it was sent").len, 5 * PARTS);
    check_parts(&region, &parts, &body(1, 5 * PARTS));
    sent.await.expect("it is sent");
}

pub async fn what_a_region_has_got_is_another_receives_if_nobody_takes_it(ends: Ends) {
    let builder = || Endpoint::builder().block(10_000);
    let (near, far) = (ends.open(0, builder()).await, ends.open(1, builder()).await);
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    for (number, len) in (0..).zip([50, 5000, 100_000]) {
        let (region, parts) = two_parts(len);
        let receive = far.receive_into(parts.clone(), Match::any());
        // The send is done when the whole body is there.
        peer.send_synchronously(number, body(number, len)).await.expect("it was received");
        drop(receive);
        if len > 50_000 {
            check_parts(&region, &parts, &body(number, len));
        }
        region.write_at(0, &vec![0; region.len()]).expect("it is within");
        check(&far.receive(Match::any()).await.expect("it was sent"), number, len);
    }
}
