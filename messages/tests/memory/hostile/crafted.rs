//! A stranger that knows the protocol and breaks it.

use doorbell_messages::{Match, ReceiveError, SendError, Unsent};

use crate::hostile::stage::{Bounded, Requests, Stage, WINDOW};
use crate::wire::{
    AGAIN, BACK, BROWSE, CONNECT, DONE, EAGER, FREED, GIVEN_UP, HOLDS, LEAVE, OFFER, PASSED,
    SEARCH, SEEN, TAKE, TAKEN, heading,
};

pub async fn messages_that_nothing_was_promised_to_are_dropped(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let bounded = Bounded::to(8 << 20);
    let mut receive = stage.victim.receive(Match::any());
    for order in 0..10_000 {
        stage.stranger.say(TAKEN, &[order % 100, heading(1000, true, false), 0], &[7; 1000]).await;
    }
    stage.stranger.is_heard().await;
    assert!(receive.test().is_none(), "nothing was promised");
    bounded.check("after all");
    receive.cancel();
    stage.is_well().await;
}

pub async fn answers_to_offers_that_were_not_made_do_nothing(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let held: Vec<_> = (0..200).map(|bits| stage.to_stranger.send(bits, vec![7; 1000])).collect();
    for order in 0..300 {
        for handler in [TAKE, LEAVE, GIVEN_UP] {
            stage.stranger.say(handler, &[order], &[]).await;
        }
    }
    stage.stranger.is_heard().await;
    stage.is_well().await;
    let company = stage.left();
    let (mut left, mut lost) = (0, 0);
    for send in held {
        match send.await {
            Ok(()) => left += 1,
            Err(SendError::Gone { what: Unsent::Bytes(1000), .. }) => lost += 1,
            Err(why) => panic!("{why}"),
        }
    }
    assert!(left * 1384 <= WINDOW && lost > 0, "{left} have left, and {lost} have not");
    company.is_well().await;
}

pub async fn more_of_the_window_than_was_taken_can_not_be_given_back(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    for cost in [1, u64::MAX, u64::MAX, u64::MAX / 2, u64::MAX] {
        stage.stranger.say(FREED, &[cost], &[]).await;
    }
    stage.stranger.is_heard().await;
    stage.is_well().await;
}

pub async fn a_stranger_has_no_more_memory_than_its_window(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    // The stranger's endpoint, its connection and the victim's buffers are among them.
    let bounded = Bounded::to(8 << 20);
    for number in 0..20_000 {
        stage.stranger.say(EAGER, &[number, heading(2000, false, false), 0], &[7; 2000]).await;
        bounded.check(format_args!("after message {number}"));
    }
    stage.is_well().await;
}

pub async fn searches_without_end_are_bounded(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let held: Vec<_> = (0..200).map(|bits| stage.to_stranger.send(bits, vec![7; 1000])).collect();
    let bounded = Bounded::to(32 << 20);
    for search in 0..200_000 {
        stage.stranger.say(SEARCH, &[search, 1 << 40 | search, u64::MAX], &[]).await;
        bounded.check(format_args!("after search {search}"));
    }
    // The stranger was cut off, and what is held for it is not sent.
    for send in held.into_iter().skip(100) {
        assert!(matches!(send.await, Err(SendError::Gone { .. })));
    }
    stage.is_well().await;
}

pub async fn places_that_are_given_back_without_end_are_bounded(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    // Of many messages that are held, all but the first and the last are cancelled, so that places
    // are free which the stranger may pretend to have messages of.
    let held: Vec<_> = (0..100).map(|bits| stage.to_stranger.send(bits, vec![7; 1000])).collect();
    for _ in 0..100_000 {
        assert!(stage.to_stranger.send(1, vec![7; 1000]).cancel(), "it is held");
    }
    let last = stage.to_stranger.send(2, vec![7; 1000]);
    let bounded = Bounded::to(64 << 20);
    for order in 0..100_000 {
        stage.stranger.say(BACK, &[100 + order, order, u64::MAX], &[]).await;
        bounded.check(format_args!("after place {order}"));
    }
    // The stranger was cut off.
    for send in held.into_iter().skip(90).chain([last]) {
        assert!(matches!(send.await, Err(SendError::Gone { .. })));
    }
    stage.is_well().await;
}

pub async fn words_about_orders_that_make_no_sense_do_nothing(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let held: Vec<_> = (0..200).map(|bits| stage.to_stranger.send(bits, vec![7; 1000])).collect();
    let receive = stage.victim.receive(Match::exactly(7).from(&stage.to_stranger));
    stage.stranger.say(HOLDS, &[1], &[]).await;
    let orders = [0, 1, 5, 100, 1 << 40, u64::MAX - 1, u64::MAX];
    for kind in [BACK, BROWSE, SEEN, AGAIN, PASSED, CONNECT, OFFER, TAKEN, PASSED, EAGER] {
        for one in orders {
            for two in orders {
                stage.stranger.say(kind, &[one, two, 7], &two.to_be_bytes()).await;
            }
        }
    }
    stage.stranger.is_heard().await;
    stage.is_well().await;
    let company = stage.left();
    drop((held, receive));
    company.is_well().await;
}

pub async fn offers_and_what_is_held_of_a_peer_that_gives_no_credits_are_bounded(device: &str) {
    let stage = Stage::open(device, Requests::Kept).await;
    let bounded = Bounded::to(8 << 20);
    for number in 0..100_000 {
        stage.stranger.say(OFFER, &[number, number, number], &1000_u64.to_be_bytes()).await;
        bounded.check(format_args!("after offer {number}"));
    }
    stage.is_well().await;
}

pub async fn synchronous_messages_of_a_peer_that_gives_no_credits_are_bounded(device: &str) {
    let stage = Stage::open(device, Requests::Kept).await;
    let bounded = Bounded::to(8 << 20);
    for number in 0..100_000 {
        let receive = stage.victim.receive(Match::exactly(number).from(&stage.to_stranger));
        stage.stranger.say(EAGER, &[number, 0, 1 + number], &[]).await;
        if let Err(why) = receive.await {
            assert!(matches!(why, ReceiveError::PeerGone { .. }), "{why}");
            break;
        }
        bounded.check(format_args!("after message {number}"));
    }
    stage.is_well().await;
}

pub async fn held_messages_that_are_told_of_again_and_again_cost_no_memory(device: &str) {
    let stage = Stage::open(device, Requests::Kept).await;
    let post = |bits: u64| stage.victim.receive(Match::exactly(bits << 40));
    let receives: Vec<_> = (0..1000).map(post).collect();
    let bounded = Bounded::to(8 << 20);
    for number in 0..1000 {
        stage.stranger.say(HOLDS, &[1], &[]).await;
        bounded.check(format_args!("after telling {number} times"));
    }
    drop(receives);
    stage.is_well().await;
}

pub async fn a_synchronous_send_to_another_is_not_done_by_a_stranger(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let mut send = stage.victim_to_good.send_synchronously(1 << 40, "for the good peer");
    for number in 0..1000 {
        stage.stranger.say(DONE, &[number, 1], &[]).await;
    }
    stage.stranger.is_heard().await;
    assert!(send.test().is_none(), "the good peer has not received the message");
    stage.is_well().await;
}

// The receive that had taken the first offer was forgotten, and waited for ever.
pub async fn receives_end_although_a_message_was_offered_twice(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let receives = [0, 1].map(|_| stage.victim.receive(Match::exactly(7).from(&stage.to_stranger)));
    stage.stranger.say(HOLDS, &[1], &[]).await;
    for search in 0..20 {
        stage.stranger.say(OFFER, &[search, 5, 7], &1000_u64.to_be_bytes()).await;
    }
    stage.stranger.is_heard().await;
    let company = stage.left();
    for receive in receives {
        let gone = receive.await.expect_err("the stranger has sent nothing");
        assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    }
    company.is_well().await;
}

pub async fn a_message_that_was_offered_and_is_not_sent_holds_up_no_others(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let receive = stage.victim.receive(Match::exactly(7).from(&stage.to_stranger));
    stage.stranger.say(HOLDS, &[1], &[]).await;
    for search in 0..20 {
        stage.stranger.say(OFFER, &[search, search, 7], &1000_u64.to_be_bytes()).await;
    }
    stage.stranger.is_heard().await;
    stage.is_well().await;
    let company = stage.left();
    let gone = receive.await.expect_err("the stranger has sent nothing");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    company.is_well().await;
}
