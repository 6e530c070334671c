//! Each promise over each device, with both policies and each offload.

/// Declares all tests of a list for every device and every policy.
macro_rules! everywhere {
    ($($test:ident)+) => {
        everywhere!(@device shm ["shm", "shm"] here: $($test)+);
        everywhere!(@device udp ["udp:127.0.0.1:0", "udp:127.0.0.1:0"] here: $($test)+);
        everywhere!(@device packet ["packet:a0", "packet:b0"] lab: $($test)+);
    };
    (@device $device:ident $devices:tt $place:ident: $($list:tt)+) => {
        mod $device {
            everywhere!(@policy emp $devices $place: $($list)+);
            everywhere!(@policy rmpp $devices $place: $($list)+);
            everywhere!(@policy receive_offloaded $devices $place: $($list)+);
            everywhere!(@policy both_offloaded $devices $place: $($list)+);
        }
    };
    (@policy $policy:ident $devices:tt $place:ident: $($test:ident)+) => {
        mod $policy {
            $(everywhere!(@test $test $policy $devices $place);)+
        }
    };
    (@test $test:ident $policy:ident $devices:tt here) => {
        #[test]
        fn $test() {
            let (devices, policy) = ($devices, crate::frames::common::$policy());
            crate::frames::everywhere::run(crate::frames::promises::$test(crate::frames::common::Ends { devices, policy }));
        }
    };
    (@test $test:ident $policy:ident $devices:tt lab) => {
        #[test]
        fn $test() {
            doorbell_kit::lab::test(|lab| {
                let [near, far] = crate::frames::common::CABLE;
                lab.loopback(near, far, 9000).expect("a lab has cables");
                let (devices, policy) = ($devices, crate::frames::common::$policy());
                let ends = crate::frames::common::Ends { devices, policy };
                crate::frames::everywhere::run(crate::frames::promises::$test(ends));
            });
        }
    };
}

/// Runs a test on one thread, which is in the right namespace.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

everywhere! {
    messages_of_all_lengths_arrive_as_they_were_sent
    messages_are_received_by_what_they_match
    receives_that_were_posted_first_get_the_first_messages
    messages_sent_at_once_arrive_at_receives_posted_one_after_another
    a_message_without_a_receive_arrives_once_a_receive_is_posted
    a_message_longer_than_its_receive_is_an_error_with_both_lengths
    receives_that_are_cancelled_take_no_messages
    messages_go_both_ways_at_once
    an_endpoint_that_was_never_named_is_answered
    what_is_under_way_when_a_peer_closes_ends_with_an_error
    receives_from_one_peer_end_with_an_error_when_that_peer_closes
    frames_are_placed_where_that_is_offloaded
}
