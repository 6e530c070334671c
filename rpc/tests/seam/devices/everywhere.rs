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
            use crate::devices::common::{$progress, Ends, Over, Runs, run};
            run(Runs::$runs, || crate::devices::$from::$test(Ends::new(Over::$over, $progress())));
        }
    };
    (@test $from:ident $test:ident $runs:ident $progress:ident $over:ident lab) => {
        #[test]
        fn $test() {
            use crate::devices::common::{$progress, Ends, Over, Runs, run};
            doorbell_kit::lab::test(|lab| {
                crate::devices::everywhere::plug(lab);
                run(Runs::$runs, || crate::devices::$from::$test(Ends::new(Over::$over, $progress())));
            });
        }
    };
}

/// The cable between the raw devices of this namespace.
pub fn plug(lab: &lab::Lab) {
    let [near, far] = crate::devices::common::CABLE;
    lab.loopback(near, far, 9000).expect("a lab has cables");
}

everywhere! {
    calls::unary_calls_are_answered_and_statuses_reach_the_caller
    calls::a_body_of_some_mebibytes_comes_back_as_it_was
    calls::a_call_that_is_dropped_drops_its_handler
    calls::a_deadline_ends_the_call_and_its_handler
    streams::a_method_that_answers_with_a_stream_is_called_over_a_channel
    streams::a_method_that_takes_a_stream_is_called_over_a_channel
    streams::both_stream_at_once
    endings::a_server_that_shuts_down_finishes_its_calls_and_refuses_others
    endings::a_channel_connects_again_to_a_server_that_has_started_anew
    endings::the_name_of_a_server_can_be_opened_again_as_soon_as_the_server_is_dropped
    endings::the_name_of_a_server_can_be_opened_again_as_soon_as_the_server_has_shut_down
    services::a_service_that_is_a_trait_answers
}
