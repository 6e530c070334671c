//! Calls of RPC and the messages of streams are measured on every device.

use doorbell_kit::lab;

use super::{figures, run, said};

#[test]
fn calls_are_measured_over_shared_memory_in_messages_and_by_rdma() {
    for (size, tasks) in [(8, ""), (64, " --tasks"), (4097, ""), (1 << 20, " --tasks")] {
        let found =
            figures(&format!("rpc_lat --pair --device shm --size {size} --iters 50{tasks}"));
        assert_eq!((&found["test"], &found["size"]), (&"rpc_lat".into(), &size.into()));
        assert_eq!(found["iters"], 50);
        assert!(found["p50_us"].as_f64() > Some(0.0), "{found}");
        let many =
            format!("rpc_bw --pair --device shm --size {size} --iters 200 --in-flight 7{tasks}");
        let found = figures(&many);
        assert!(found["msgs_per_s"].as_f64() > Some(0.0), "{found}");
        assert!(found["iters"].as_u64() >= Some(200), "{found}");
    }
}

#[test]
fn calls_are_measured_over_sockets_and_raw_ethernet() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            for size in [64, 100_000] {
                let command = format!("rpc_bw --pair --device {device} --size {size} --iters 300");
                let found = figures(&command);
                assert_eq!(found["device"], device);
                assert!(found["gbytes_per_s"].as_f64() > Some(0.0), "{found}");
            }
        }
    });
}

#[test]
fn messages_of_a_stream_are_measured_from_the_server_and_both_ways() {
    for size in [8, 64, 65536] {
        for ways in ["", " --both-ways"] {
            let command = format!("rpc_stream --pair --device shm --size {size} --iters 500{ways}");
            let found = figures(&command);
            assert_eq!((&found["test"], &found["iters"]), (&"rpc_stream".into(), &500.into()));
            assert!(found["msgs_per_s"].as_f64() > Some(0.0), "{found}");
        }
    }
}

#[test]
fn a_stream_is_measured_for_a_time_over_sockets_and_raw_ethernet() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            for ways in ["", " --both-ways"] {
                let command = format!("rpc_stream --pair --device {device} --seconds 0.1{ways}");
                let found = figures(&command);
                assert_eq!((&found["device"], &found["size"]), (&device.into(), &64.into()));
                assert!(found["gbytes_per_s"].as_f64() > Some(0.0), "{found}");
            }
        }
    });
}

#[test]
fn what_is_not_for_calls_is_refused() {
    for (command, told) in [
        ("rpc_lat --pair --in-flight 2", "makes one call after the other"),
        ("rpc_bw --pair --in-flight 0", "--in-flight 0: it is 1 to 4096"),
        ("rpc_bw --pair --size 7", "--size 7: of rpc_bw it is 8 or more"),
        ("rpc_bw --pair --connections 3", "--connections and --no-map are not for rpc_bw"),
        ("rpc_bw --pair --both-ways", "--both-ways is for rpc_stream, and not for rpc_bw"),
        ("rpc_stream --pair --in-flight 2", "--in-flight and --tasks are not for rpc_stream"),
        ("am_lat --pair --tasks", "--tasks is of RPC, and am_lat is not"),
        (
            "send_bw --pair --in-flight 8",
            "--in-flight is for rpc_bw and call_bw, and not for send_bw",
        ),
    ] {
        let output = run(&format!("perf {command}"));
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(said(&output).contains(told), "{command}: {}", said(&output));
    }
}
