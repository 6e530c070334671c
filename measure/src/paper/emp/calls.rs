//! Table 2: what the program's calls cost.

use doorbell_report::{Cell, Column, Section, Table};

use super::carriers::{CARRIERS, over};
use super::published::{CALLS, cited};
use crate::judging::{claim, is_below};
use crate::paper::exchange::{Exchanges, value};

pub const RUNS: usize = CARRIERS.len();

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let mut table = Table::new(
        format!("table-2-{device}"),
        format!(
            "The paper's table 2: messages of 10 kB in batches of five each way, over {device}"
        ),
    )
    .column(Column::text("Carrier"))
    .column(Column::number("Post a send", "µs"))
    .column(Column::number("Post a receive", "µs"))
    .column(Column::number("Wait", "µs"));
    let mut waits = Vec::new();
    for (name, arguments) in CARRIERS {
        let run = format!("calls {} --sizes 10000", over(device, arguments));
        let found = exchanges.run(&format!("calls, {name}"), &run, 0.4);
        let Some(entry) = found.first() else { continue };
        let [send, receive, wait] =
            ["send_us", "receive_us", "wait_us"].map(|column| value(&entry[column]));
        waits.push((name, wait));
        table = table.row([name.into(), send.into(), receive.into(), wait.into()]);
    }
    for (name, values) in CALLS {
        let [send, receive, wait] = values.map(|of| Cell::published(of, cited("table 2")));
        table = table.row([name.into(), send, receive, wait]);
    }
    let wait = |name: &str| waits.iter().find(|(of, _)| *of == name).and_then(|(_, wait)| *wait);
    let [tcp, _, thread] = CARRIERS.map(|(name, _)| wait(name));
    let section = Section::new(format!("Table 2: the cost of calls over {device}"))
        .paragraph(
            "Receives are posted, then sends, then the program waits for all ten messages. A wait is \
             one call for the whole batch, and contains the time that the messages take.",
        )
        .table(table);
    let (Some(thread), Some(tcp)) = (thread, tcp) else { return section };
    section.note(claim(
        is_below(thread, tcp),
        format!(
            "Waiting costs the program least where the protocol is not its work (§5.2: 3 µs against \
             TCP's 126). With a thread: {:.1} µs, and {:.1} µs by TCP.",
            thread.value, tcp.value
        ),
    ))
}
