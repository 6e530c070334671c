//! Exchanges measured: by code without spans and by code with spans, in turn.

mod counted;
mod ends;
mod exchange;
mod plain;
mod rounds;

use anyhow::{Context, anyhow};
use doorbell_splitc::Carrier;
use doorbell_verbs::Nic;

use crate::perf::figures::breakdown::Breakdown;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Costs;
use crate::perf::{Args, Plan};
use crate::usage;
use ends::Ends;

/// Measures a layer's exchange on this thread, which must be the only one of the process.
pub fn run(layer: Costs, args: &Args, plan: &Plan) -> anyhow::Result<Figures> {
    if args.pair || args.listen.is_some() || args.connect.is_some() {
        return Err(usage::wrong(anyhow!(
            "{} runs both ends on one thread of this process: leave --pair, --listen and --connect \
             out",
            plan.test.name()
        )));
    }
    let ends = Ends::prepare(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(async {
        let [plain, counted] = [ends.open(0, plan)?, ends.open(1, plan)?];
        let device = Some(plain[0].capabilities().name);
        let (rounds, found) = match layer {
            Costs::Am => of_requests(plan, &plain, &counted).await?,
            Costs::SplitC => of_gets(plan, &plain, &counted).await?,
        };
        Ok(Figures { device, iters: rounds, found: Quantity::Costs(Box::new(found)) })
    })
}

async fn of_requests(
    plan: &Plan,
    plain: &[Nic; 2],
    counted: &[Nic; 2],
) -> anyhow::Result<(u64, Breakdown)> {
    let plain = plain::Requests::new(plain).await?;
    let counted = counted::Requests::new(counted).await?;
    rounds::measure(plain, counted, plan).await
}

async fn of_gets(
    plan: &Plan,
    plain: &[Nic; 2],
    counted: &[Nic; 2],
) -> anyhow::Result<(u64, Breakdown)> {
    let by_messages = plan.carrier != Some(Carrier::OneSided);
    let plain = plain::Gets::new(plain, by_messages).await?;
    let counted = counted::Gets::new(counted, by_messages).await?;
    rounds::measure(plain, counted, plan).await
}
