//! Exchanges measured: by code without spans and by code with spans, in turn.

mod counted;
mod ends;
mod exchange;
mod plain;
mod rounds;

use anyhow::{Context, anyhow};
use doorbell_splitc::Carrier;

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
        let (first, second) = (ends.open(0, plan)?, ends.open(1, plan)?);
        let device = Some(first[0].capabilities().name);
        let (rounds, found) = match layer {
            Costs::Am => {
                let plain = plain::Requests::new(&first).await?;
                rounds::measure(plain, counted::Requests::new(&second).await?, plan).await?
            }
            Costs::SplitC => {
                let by_messages = plan.carrier != Some(Carrier::OneSided);
                let plain = plain::Gets::new(&first, by_messages).await?;
                rounds::measure(plain, counted::Gets::new(&second, by_messages).await?, plan)
                    .await?
            }
            Costs::Tags => {
                let plain = plain::Tagged::new(&first).await?;
                rounds::measure(plain, counted::Tagged::new(&second).await?, plan).await?
            }
            Costs::Rpc => {
                let plain = plain::Calls::new(&first).await?;
                rounds::measure(plain, counted::Calls::new(&second).await?, plan).await?
            }
        };
        Ok(Figures { device, iters: rounds, found: Quantity::Costs(Box::new(found)) })
    })
}
