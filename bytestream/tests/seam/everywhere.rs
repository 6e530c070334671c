//! Each promise over each device, whoever runs the NIC and on both kinds of runtime.

use doorbell_kit::lab;

/// Declares all tests of a list for every device, both kinds of progress, and both runtimes.
macro_rules! everywhere {
    ($($from:ident::$test:ident)+) => {
        everywhere!(@device shm Shm here: $($from::$test)+);
        everywhere!(@device udp Udp here: $($from::$test)+);
        everywhere!(@device packet Packet lab: $($from::$test)+);
        everywhere!(@device packet_v2 PacketV2 lab: $($from::$test)+);
    };
    (@device $device:ident $over:ident $place:ident: $($list:tt)+) => {
        mod $device {
            everywhere!(@progress inline $over $place: $($list)+);
            everywhere!(@progress dedicated $over $place: $($list)+);
        }
    };
    (@progress $progress:ident $over:ident $place:ident: $($list:tt)+) => {
        mod $progress {
            everywhere!(@runs current_thread CurrentThread $progress $over $place: $($list)+);
            everywhere!(@runs multi_thread MultiThread $progress $over $place: $($list)+);
        }
    };
    (@runs $module:ident $runs:ident $progress:ident $over:ident $place:ident:
     $($from:ident::$test:ident)+) => {
        mod $module {
            $(everywhere!(@test $from $test $runs $progress $over $place);)+
        }
    };
    (@test $from:ident $test:ident $runs:ident $progress:ident $over:ident here) => {
        #[test]
        fn $test() {
            use crate::common::{$progress, Over, Runs, over};
            over(Over::$over, $progress(), Runs::$runs, crate::$from::$test);
        }
    };
    (@test $from:ident $test:ident $runs:ident $progress:ident $over:ident lab) => {
        #[test]
        fn $test() {
            use crate::common::{$progress, Over, Runs, over};
            doorbell_kit::lab::test(|lab| {
                crate::everywhere::plug(lab);
                over(Over::$over, $progress(), Runs::$runs, crate::$from::$test);
            });
        }
    };
}

/// The cable between the raw devices of this namespace.
pub fn plug(lab: &lab::Lab) {
    let [near, far] = crate::common::CABLE;
    lab.loopback(near, far, 9000).expect("a lab has cables");
}

everywhere! {
    streams::each_direction_ends_by_itself
    streams::megabytes_go_both_ways_at_once
    streams::slices_that_are_written_together_arrive_in_a_row
    streams::a_read_or_write_that_is_given_up_loses_nothing
    streams::what_is_written_arrives_without_a_flush
    streams::halves_go_to_tasks_of_their_own_and_come_together_again
    streams::many_streams_of_an_endpoint_do_not_mix
    flow::a_writer_waits_for_a_reader_that_does_not_read
    flow::two_ends_that_both_end_before_they_read_do_not_wait_for_each_other
    flow::a_window_is_as_many_bytes_as_it_says_whatever_the_length_of_writes
    flow::twenty_thousand_short_requests_are_written_before_the_first_is_read
    flow::an_echo_by_copy_takes_two_windows_before_its_client_reads
    flow::short_writes_arrive_whole_before_the_end_of_their_stream
    flow::a_short_round_trip_is_one_message_each_way
    closing::a_stream_that_is_dropped_still_sends_what_was_written
    closing::a_peer_that_has_dropped_its_stream_is_an_end_to_readers_and_a_broken_pipe_to_writers
    closing::an_endpoint_that_is_closed_has_sent_all_that_was_written_and_opens_no_stream
    closing::nothing_is_left_of_streams_that_are_dropped
    played::two_ends_that_do_all_kinds_of_things_read_what_was_written
}
