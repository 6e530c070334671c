//! Peers that speak to an endpoint as no endpoint of tagged messages would: the endpoint and its
//! other peers go on, and memory is bounded.

mod crafted;
mod elsewhere;
mod greetings;
mod long;
mod random;
mod stage;

use std::time::Duration;

use doorbell_kit::effort;

/// The longest that anything here may take.
fn long() -> Duration {
    Duration::from_secs(effort(30, 600))
}

/// Declares each test, an async function of a device, over shared memory in a runtime of one
/// thread, and over sockets in one of several threads.
macro_rules! on_each_device {
    ($($(#[$attribute:meta])* $from:ident::$test:ident)+) => {
        mod over_shared_memory {
            $(#[tokio::test]
            $(#[$attribute])*
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let test = super::$from::$test("shm");
                tokio::time::timeout(super::long(), test).await.expect("it ends");
            })+
        }
        mod over_sockets {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            $(#[$attribute])*
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let test = super::$from::$test("udp:127.0.0.1:0");
                tokio::time::timeout(super::long(), test).await.expect("it ends");
            })+
        }
    };
}

on_each_device! {
    random::a_stranger_that_says_anything_hurts_nobody
    crafted::messages_that_nothing_was_promised_to_are_dropped
    crafted::answers_to_offers_that_were_not_made_do_nothing
    crafted::more_of_the_window_than_was_taken_can_not_be_given_back
    crafted::a_stranger_has_no_more_memory_than_its_window
    crafted::searches_without_end_are_bounded
    crafted::places_that_are_given_back_without_end_are_bounded
    crafted::words_about_orders_that_make_no_sense_do_nothing
    crafted::offers_and_what_is_held_of_a_peer_that_gives_no_credits_are_bounded
    crafted::synchronous_messages_of_a_peer_that_gives_no_credits_are_bounded
    crafted::held_messages_that_are_told_of_again_and_again_cost_no_memory
    crafted::a_synchronous_send_to_another_is_not_done_by_a_stranger
    crafted::receives_end_although_a_message_was_offered_twice
    crafted::a_message_that_was_offered_and_is_not_sent_holds_up_no_others
    greetings::bytes_that_are_no_greeting_are_answered_by_none
    greetings::a_window_without_bounds_grows_no_further
    greetings::a_stranger_that_has_not_greeted_is_not_heard
    greetings::a_stranger_by_another_peers_name_is_not_that_peer
    greetings::greetings_without_end_take_the_memory_of_one
    greetings::an_endpoint_is_connected_to_although_a_stranger_has_its_name
    long::descriptions_of_other_lengths_are_malformed
    long::memory_that_is_not_there_fails_its_receive
    long::an_announcement_of_a_long_message_takes_no_memory_before_its_blocks_come
    long::parts_that_belong_to_no_message_are_malformed
    long::messages_that_are_begun_and_not_ended_take_the_memory_of_one
}
