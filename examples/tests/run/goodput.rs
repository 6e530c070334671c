//! What losses cost a connection that is kept busy. The example `goodput` prints the figures.

#[path = "../../goodput/measure.rs"]
mod measure;

use doorbell::protocol::wire::PathMtu;

use measure::{LINE_RATE, LOSSES, Measured, measure};

#[test]
fn a_busy_connection_fills_its_path_and_losses_cost_it_a_window_each() {
    // Of the line rate, at least: what a window for each loss leaves, and some of that.
    for (mtu, least) in
        [(PathMtu::Mtu4096, [0.97, 0.9, 0.5]), (PathMtu::Mtu1024, [0.93, 0.75, 0.25])]
    {
        let found = LOSSES.map(|loss| measure(mtu, loss, 16));
        let shares = found.each_ref().map(|found| found.bits_per_second / LINE_RATE as f64);
        for (share, least) in shares.iter().zip(least) {
            assert!((least..1.0).contains(share), "{mtu:?}: {shares:?}");
        }
        assert!(shares.is_sorted_by(|more, less| more > less), "{mtu:?}: {shares:?}");
        let again = found.each_ref().map(|Measured { again, .. }| *again);
        assert!(again.is_sorted(), "{mtu:?}: {again:?}");
        assert_eq!((again[0], found[0].timeouts), (0.0, 0));
    }
}
