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
    futures::inline_data_travels_in_the_request
    futures::an_immediate_comes_with_its_message
    futures::a_key_that_a_message_has_invalidated_is_refused
    futures::written_data_is_there_when_the_write_completes
    futures::a_write_with_an_immediate_completes_a_receive_of_the_peer
    futures::reads_return_what_the_peers_memory_holds
    futures::atomic_operations_are_atomic
    futures::queue_pairs_share_their_receives
    futures::a_look_at_memory_finds_what_peers_write
    queues::requests_of_a_batch_complete_in_their_order
    queues::requests_posted_in_a_look_keep_their_order
    queues::copied_messages_keep_their_order
    queues::a_copied_message_goes_into_one_packet
    queues::a_found_message_is_acknowledged_though_the_program_does_nothing_more
    queues::a_message_found_in_a_turn_of_the_program_is_acknowledged
    queues::unsignalled_requests_complete_only_if_they_fail
    queues::a_fenced_write_sends_what_the_read_before_it_brought
    queues::queues_share_their_receives
    queues::an_answer_posted_with_the_held_nic_leaves_at_once
    queues::a_completion_stays_in_its_queue_until_it_is_taken
    queues::a_completion_queue_is_a_stream
    queues::one_thread_waits_while_another_polls
}

/// Only lossless devices copy messages: elsewhere nothing is copied.
#[test]
fn a_copied_message_without_a_receive_ends_the_connection() {
    let program = queues::a_copied_message_without_a_receive_ends_the_connection;
    over(Over::Shm, crate::common::brief(), Runs::CurrentThread, program);
}
