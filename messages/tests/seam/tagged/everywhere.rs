//! Each promise over each device, whoever runs the NIC and on both kinds of runtime, and on a
//! simulated network that loses, repeats, damages and reorders frames.

/// Declares all tests of a list for every device, kind of progress and runtime.
macro_rules! everywhere {
    ($($(#[$attribute:meta])* $from:ident::$test:ident)+) => {
        everywhere!(@device shm Shm here: $([$(#[$attribute])*] $from::$test)+);
        everywhere!(@device udp Udp here: $([$(#[$attribute])*] $from::$test)+);
        everywhere!(@device packet Packet lab: $([$(#[$attribute])*] $from::$test)+);
        everywhere!(@device packet_v2 PacketV2 lab: $([$(#[$attribute])*] $from::$test)+);
        mod fabric {
            $(#[test]
            $(#[$attribute])*
            fn $test() {
                use crate::ends::{Over, Runs, inline, run};
                for seed in 0..doorbell_kit::effort(2, 20) {
                    let over = Over::Fabric { seed };
                    run(Runs::CurrentThread, over, inline(), crate::tagged::$from::$test);
                }
            })+
        }
    };
    (@device $device:ident $over:ident $place:ident: $($list:tt)+) => {
        mod $device {
            everywhere!(@runs one_thread CurrentThread inline $over $place: $($list)+);
            everywhere!(@runs several_threads MultiThread inline $over $place: $($list)+);
            everywhere!(@runs dedicated MultiThread dedicated $over $place: $($list)+);
        }
    };
    (@runs $module:ident $runs:ident $progress:ident $over:ident $place:ident:
     $($attributes:tt $from:ident::$test:ident)+) => {
        mod $module {
            $(everywhere!(@test $attributes $from $test $runs $progress $over $place);)+
        }
    };
    (@test [$(#[$attribute:meta])*]
     $from:ident $test:ident $runs:ident $progress:ident $over:ident here) => {
        #[test]
        $(#[$attribute])*
        fn $test() {
            use crate::ends::{$progress, Over, Runs, run};
            run(Runs::$runs, Over::$over, $progress(), crate::tagged::$from::$test);
        }
    };
    (@test [$(#[$attribute:meta])*]
     $from:ident $test:ident $runs:ident $progress:ident $over:ident lab) => {
        #[test]
        $(#[$attribute])*
        fn $test() {
            use crate::ends::{$progress, Over, Runs, plug, run};
            doorbell_kit::lab::test(|lab| {
                plug(lab);
                run(Runs::$runs, Over::$over, $progress(), crate::tagged::$from::$test);
            });
        }
    };
}

everywhere! {
    order::messages_of_one_sender_are_received_in_the_order_of_sending
    order::receives_that_were_posted_first_get_the_first_messages
    order::receives_of_different_masks_share_messages_in_the_order_of_posting
    order::a_message_behind_those_that_fill_the_window_is_received_first
    order::held_messages_are_received_in_order_by_receives_of_any
    order::receives_that_wait_do_not_hold_up_messages_that_they_do_not_take
    order::posted_receives_are_met_in_any_order
    order::unexpected_messages_are_received_in_any_order
    matching::messages_are_received_by_what_they_match
    matching::a_mask_chooses_the_bits_that_are_compared
    matching::random_patterns_take_the_first_message_that_they_match
    matching::a_receive_from_one_peer_takes_no_message_of_another
    lengths::bodies_of_each_length_come_as_they_were_sent
    lengths::a_message_longer_than_messages_may_be_is_an_error_with_both_lengths
    lengths::a_message_longer_than_its_receive_is_an_error_with_both_lengths
    lengths::a_message_as_long_as_its_receive_has_room_is_received
    placing::bodies_come_into_slices_pieces_and_regions
    placing::bodies_that_were_there_before_come_into_memory_too
    placing::a_message_longer_than_the_memory_is_an_error_and_writes_nothing
    placing::messages_of_dropped_receives_into_memory_are_not_lost
    placing::memory_of_a_dropped_receive_is_not_written_any_more
    placing::a_body_comes_into_thousands_of_parts_of_a_region
    placing::what_a_region_has_got_is_another_receives_if_nobody_takes_it
    cancelling::receives_that_are_cancelled_take_no_messages
    cancelling::a_receive_that_has_met_its_message_is_not_cancelled
    cancelling::messages_of_dropped_receives_wait_again_where_they_were
    cancelling::long_messages_of_dropped_receives_are_not_lost
    cancelling::cancels_that_race_with_messages_lose_none
    cancelling::cancels_that_race_with_held_messages_lose_none
    dropping::a_long_message_keeps_its_place_when_its_receive_is_dropped
    dropping::a_message_that_came_ahead_goes_back_behind_those_that_are_held
    dropping::a_long_message_that_came_ahead_goes_back_behind_those_that_are_held
    dropping::receives_that_are_dropped_at_any_moment_keep_the_order_of_each_tag
    dropping::receives_that_are_dropped_at_any_moment_keep_the_order_of_held_messages
    dropping::a_message_too_long_for_a_dropped_receive_is_left_for_another
    dropping::a_held_message_too_long_for_a_dropped_receive_is_left_for_another
    probing::a_message_that_waits_is_seen_by_a_probe
    probing::a_probe_sees_what_a_receive_of_the_same_pattern_would_take
    probing::a_message_behind_those_that_fill_the_window_is_seen_in_the_end
    synchronous::a_synchronous_send_is_done_when_its_message_is_received
    synchronous::a_synchronous_send_of_a_held_message_is_done_when_its_message_is_received
    synchronous::a_synchronous_send_into_too_little_room_is_done
    synchronous::each_synchronous_send_is_done_by_its_own_receive
    peers::messages_of_many_senders_interleave_and_each_keeps_its_order
    peers::endpoints_that_connect_to_each_other_send_both_ways
    peers::what_waits_for_a_peer_that_has_gone_ends_with_an_error
    peers::errors_name_a_peer_that_has_connected_here
    peers::a_receive_from_a_peer_that_has_gone_takes_what_has_come_or_ends
    threads::many_tasks_send_and_receive_at_once
    threads::many_threads_send_and_receive_on_one_endpoint
}
