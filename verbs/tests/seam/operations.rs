//! Each operation, over each device, in each mode of progress, and wherever its program runs.

mod futures;
mod queues;

use std::future::Future;

use doorbell_kit::lab;
use doorbell_verbs::{Config, Nic};

use crate::common::{CABLE, Over, Runs, nics, run};

/// Opens two NICs where their programs run, and runs the programs.
fn over<F>(
    over: Over,
    config: Config,
    runs: Runs,
    programs: impl FnOnce(Nic, Nic) -> F + Send + 'static,
) where
    F: Future<Output = ()>,
{
    run(runs, move || async move {
        let (near, far) = nics(over, &config);
        programs(near, far).await;
    });
}

/// Declares all tests of a list for every device, both modes of progress, and wherever programs
/// run.
macro_rules! everywhere {
    ($($from:ident::$test:ident)+) => {
        everywhere!(@device shm Shm here: $($from::$test)+);
        everywhere!(@device udp Udp here: $($from::$test)+);
        everywhere!(@device packet Packet lab: $($from::$test)+);
        everywhere!(@device packet_v2 PacketV2 lab: $($from::$test)+);
    };
    (@device $device:ident $over:ident $place:ident: $($list:tt)+) => {
        mod $device {
            everywhere!(@progress inline brief $over $place: $($list)+);
            everywhere!(@progress dedicated dedicated $over $place: $($list)+);
        }
    };
    (@progress $progress:ident $config:ident $over:ident $place:ident: $($list:tt)+) => {
        mod $progress {
            everywhere!(@runs current_thread CurrentThread $config $over $place: $($list)+);
            everywhere!(@runs multi_thread MultiThread $config $over $place: $($list)+);
            everywhere!(@runs without_a_runtime Nowhere $config $over $place: $($list)+);
        }
    };
    (@runs $module:ident $runs:ident $config:ident $over:ident $place:ident:
     $($from:ident::$test:ident)+) => {
        mod $module {
            use crate::common::$config;
            use crate::operations::*;
            $(everywhere!(@test $from $test $runs $config $over $place);)+
        }
    };
    (@test $from:ident $test:ident $runs:ident $config:ident $over:ident here) => {
        #[test]
        fn $test() {
            crate::operations::over(Over::$over, $config(), Runs::$runs, $from::$test);
        }
    };
    (@test $from:ident $test:ident $runs:ident $config:ident $over:ident lab) => {
        #[test]
        fn $test() {
            doorbell_kit::lab::test(|lab| {
                crate::operations::plug(lab);
                crate::operations::over(Over::$over, $config(), Runs::$runs, $from::$test);
            });
        }
    };
}

/// Plugs the cable between the raw devices of this namespace.
pub fn plug(lab: &lab::Lab) {
    let [near, far] = CABLE;
    lab.loopback(near, far, 9000).expect("a lab has cables");
}

everywhere! {
    futures::messages_of_every_length_arrive_whole_and_in_order
    futures::a_few_bytes_travel_in_the_request
    futures::an_immediate_comes_with_its_message
    futures::a_key_that_a_message_invalidates_is_of_no_use_any_more
    futures::what_was_written_is_there_when_the_write_is_done
    futures::a_write_that_tells_completes_a_receive_of_the_peers
    futures::reads_bring_what_is_there
    futures::atomic_operations_are_atomic
    futures::queue_pairs_share_their_receives
    futures::who_looks_at_memory_finds_what_peers_write
    queues::requests_of_a_batch_complete_in_their_order
    queues::what_is_posted_in_a_look_keeps_its_order
    queues::what_is_copied_keeps_its_order
    queues::what_is_copied_goes_into_one_packet
    queues::who_has_found_a_message_and_does_nothing_more_has_acknowledged_it
    queues::who_has_taken_a_turn_and_found_a_message_has_acknowledged_it
    queues::of_unsignalled_requests_only_failures_are_told
    queues::a_fenced_write_sends_what_the_read_before_it_brought
    queues::queues_share_their_receives
    queues::an_answer_in_hand_leaves
    queues::what_is_waited_for_stays_until_it_is_taken
    queues::a_completion_queue_is_a_stream
    queues::a_thread_waits_and_another_polls
}

/// Only lossless devices copy messages: elsewhere nothing is copied.
#[test]
fn what_is_copied_ends_the_connection_where_there_is_no_receive() {
    let program = queues::what_is_copied_ends_the_connection_where_there_is_no_receive;
    over(Over::Shm, crate::common::brief(), Runs::CurrentThread, program);
}
