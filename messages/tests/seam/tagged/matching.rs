//! What receives match.

use doorbell_messages::{Endpoint, Match};
use doorbell_simulation::Luck;

use crate::ends::{Ends, Pair};

pub async fn messages_are_received_by_what_they_match(ends: Ends) {
    let Pair { near, far, peer } = ends.pair(1 << 20).await;
    for bits in [3, 5, 4] {
        peer.send(bits, bits.to_string()).await.expect("it is sent");
    }
    let four = far.receive(Match::exactly(4)).await.expect("it was sent");
    assert_eq!((four.bits, &four.body[..]), (4, &b"4"[..]));
    let odd = far.receive(Match::bits(1).mask(1).from(&four.from));
    assert_eq!(odd.await.expect("it was sent").bits, 3);
    four.from.send(1, "back").await.expect("it is sent");
    let any = far.receive(Match::any()).await.expect("it was sent");
    assert_eq!(any.bits, 5);
    let back = near.receive(Match::any().from(&peer)).await.expect("it was sent");
    assert_eq!((back.bits, &back.body[..], &back.from), (1, &b"back"[..], &peer));
}

pub async fn a_mask_chooses_the_bits_that_are_compared(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for (number, bits) in (0_u8..).zip([u64::MAX, 0, 1 << 63, 0xAB00, 0xAB01]) {
        peer.send(bits, vec![number]).await.expect("it is sent");
    }
    let expected = [
        (Match::bits(1 << 63).mask(1 << 63 | 1), 2),
        (Match::bits(0xABFF).mask(0xFF00), 3),
        (Match::bits(0xAB01), 4),
        (Match::bits(0xFFFF).mask(0), 0),
        (Match::exactly(0), 1),
    ];
    for (pattern, number) in expected {
        let message = far.receive(pattern).await.expect("it was sent");
        assert_eq!(message.body[..], [number], "{pattern:?}");
    }
}

// The model is a list: a receive takes the first entry whose bits the mask finds equal.
pub async fn random_patterns_take_the_first_message_that_they_match(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let mut luck = Luck::new(3);
    let mut waiting: Vec<(u64, u32)> = Vec::new();
    for number in 0..400_u32 {
        let bits = luck.below(16);
        peer.send(bits, number.to_be_bytes().to_vec()).await.expect("it is sent");
        waiting.push((bits, number));
    }
    while !waiting.is_empty() {
        let (bits, mask) = (luck.below(16), luck.below(16) | u64::MAX << 4);
        let takes = |&(of, _): &(u64, u32)| (of ^ bits) & mask == 0;
        let Some(at) = waiting.iter().position(takes) else { continue };
        let (bits_of, number) = waiting.remove(at);
        let message = far.receive(Match::bits(bits).mask(mask)).await.expect("it was sent");
        assert_eq!((message.bits, &message.body[..]), (bits_of, &number.to_be_bytes()[..]));
    }
}

pub async fn a_receive_from_one_peer_takes_no_message_of_another(ends: Ends) {
    let Pair { near: _near, far, peer: of_near } = ends.pair(1 << 20).await;
    let other = ends.open(0, Endpoint::builder()).await;
    let of_other = other.connect(far.name()).await.expect("it is there");
    of_near.send(1, "hello of near").await.expect("it is sent");
    of_other.send(2, "hello of other").await.expect("it is sent");
    let near = far.receive(Match::exactly(1)).await.expect("it was sent").from;
    let other = far.receive(Match::exactly(2)).await.expect("it was sent").from;
    assert_ne!(near, other);
    let from_other = far.receive(Match::any().from(&other));
    let from_any = far.receive(Match::any());
    of_near.send(7, "near").await.expect("it is sent");
    let any = from_any.await.expect("it was sent");
    assert_eq!((&any.body[..], &any.from), (&b"near"[..], &near));
    of_other.send(7, "other").await.expect("it is sent");
    let exactly = from_other.await.expect("it was sent");
    assert_eq!((&exactly.body[..], &exactly.from), (&b"other"[..], &other));
}
