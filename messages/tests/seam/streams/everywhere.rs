//! Each promise over each device.

use doorbell_kit::lab;

/// Declares all tests of a list for every device.
macro_rules! everywhere {
    ($($from:ident::$test:ident)+) => {
        everywhere!(@device shm 1 here: $($from::$test)+);
        everywhere!(@device shm_dedicated 2 here: $($from::$test)+);
        everywhere!(@device udp 2 here: $($from::$test)+);
        everywhere!(@device packet 1 lab: $($from::$test)+);
        everywhere!(@device packet_v2 2 lab: $($from::$test)+);
    };
    (@device $device:ident $threads:literal $place:ident: $($from:ident::$test:ident)+) => {
        mod $device {
            $(everywhere!(@test $from $test $device $threads $place);)+
        }
    };
    (@test $from:ident $test:ident $device:ident $threads:literal here) => {
        #[test]
        fn $test() {
            crate::streams::common::run($threads, || {
                crate::streams::$from::$test(crate::streams::common::Ends::$device())
            });
        }
    };
    (@test $from:ident $test:ident $device:ident $threads:literal lab) => {
        #[test]
        fn $test() {
            doorbell_kit::lab::test(|lab| {
                crate::streams::everywhere::plug(lab);
                crate::streams::common::run($threads, || {
                    crate::streams::$from::$test(crate::streams::common::Ends::$device())
                });
            });
        }
    };
}

/// The cable between the raw devices of this namespace.
pub fn plug(lab: &lab::Lab) {
    let [near, far] = crate::streams::common::CABLE;
    lab.loopback(near, far, 9000).expect("a lab has cables");
}

everywhere! {
    pieces::a_message_comes_as_it_was_sent_however_both_sides_cut_it
    pieces::messages_that_are_sent_at_once_come_as_they_were_sent
    pieces::a_message_that_fits_into_a_packet_is_one
    pieces::messages_of_the_lengths_around_packets_and_none_at_all_end_well
    pieces::handlers_of_one_sender_interleave
    pieces::a_handler_answers_its_sender_by_a_message
    pieces::receiving_beyond_the_end_is_an_error_with_both_lengths
    pieces::a_receive_that_is_dropped_leaves_what_had_come_to_the_next
    failing::a_handler_that_ends_early_is_an_error_that_says_how
    failing::a_short_message_whose_handler_fails_is_an_error_for_who_waits_for_that
    failing::a_message_that_is_dropped_is_an_error_for_its_receiver
    failing::a_handler_that_has_stopped_holds_up_no_other
    failing::as_many_messages_as_agreed_are_open_and_others_wait
    failing::messages_to_and_from_a_peer_that_has_gone_end_with_an_error
    failing::what_waits_for_a_server_that_has_gone_ends_with_an_error
    pacing::nothing_is_handed_on_before_it_is_extracted_and_nothing_is_lost
    pacing::what_a_peer_has_sent_that_has_gone_is_not_handed_on
    pacing::an_endpoint_that_is_not_paced_extracts_nothing
}
