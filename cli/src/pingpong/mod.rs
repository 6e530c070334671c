//! `doorbell pingpong`: messages to and fro with a peer that speaks RoCE, whoever made it.
//!
//! It does what `ibv_rc_pingpong`, `ibv_uc_pingpong` and `ibv_ud_pingpong` do, and meets them as
//! they meet each other: so anybody's adapter can be tried, and the kernel's driver.

mod args;
mod content;
mod meeting;
mod rally;

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use doorbell_measure::out;
use serde_json::json;

use meeting::Meeting;
use rally::Counted;

pub use args::Args;

/// Plays, and says how it went.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(async {
        let mut end = Meeting::prepare(args)?.join(args).await?;
        let (took, confirmed) = end.play(args).await?;
        let counted = end.counted();
        let printed = out::print(&match args.json {
            true => format!("{}\n", json(args, took, confirmed, &counted)),
            false => words(args, took, confirmed, &counted),
        });
        end.linger(args.patience()).await;
        printed
    })
}

/// As rdma-core's pingpongs say it.
fn words(args: &Args, took: Duration, confirmed: bool, counted: &Counted) -> String {
    let (bytes, seconds) = (2 * args.size() as u64 * args.iters, took.as_secs_f64());
    let mut words = format!(
        "{bytes} bytes in {seconds:.2} seconds = {:.2} Mbit/s\n{} iters in {seconds:.2} seconds = \
         {:.2} µs an iteration\n",
        bytes as f64 * 8.0 / 1e6 / seconds,
        args.iters,
        seconds * 1e6 / args.iters as f64,
    );
    if args.check {
        words += &format!("{} messages checked, every byte\n", args.iters);
    }
    if !confirmed {
        words += "the last message was not confirmed: the other side has gone, with all it waited \
                  for\nor without\n";
    }
    let Counted { sent_again, timeouts, refused, .. } = counted;
    if sent_again + timeouts + refused > 0 {
        words += &format!(
            "{sent_again} packets were sent again, {timeouts} time-outs, {refused} packets refused\n"
        );
    }
    words
}

fn json(args: &Args, took: Duration, confirmed: bool, counted: &Counted) -> serde_json::Value {
    let transport = args.transport.to_possible_value().expect("every transport has a name");
    json!({
        "schema": out::SCHEMA,
        "transport": transport.get_name(),
        "device": args.device,
        "size": args.size(),
        "iters": args.iters,
        "checked": args.check,
        "confirmed": confirmed,
        "seconds": took.as_secs_f64(),
        "sent_again": counted.sent_again,
        "timeouts": counted.timeouts,
        "received": counted.received,
        "refused": counted.refused,
    })
}
