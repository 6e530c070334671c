//! Prints a report with one figure of each kind. The numbers are invented.
//!
//! ```sh
//! cargo run -p doorbell-report --example sample > sample.html
//! ```

mod data;

fn main() {
    print!("{}", data::report().to_html());
}
