//! The variables by which a process of a job finds the others, but for the secret.

use super::args::Args;
use super::plan::Process;

/// The names and values of variables.
pub type Variables = Vec<(String, String)>;

/// How many seconds processes have to find each other if nobody says anything else.
const WITHIN: u64 = 30;

/// The variables that a process of a job must not take over from the environment of the launcher,
/// because it has values of its own, or because nobody else may see them.
const NOT_TAKEN_OVER: [&str; 4] =
    ["DOORBELL_ADDRESSES", "DOORBELL_KEY", "DOORBELL_SECRET", "DOORBELL_SECRET_FILE"];

/// The variables that all processes of a job get.
#[derive(Debug)]
pub struct Common<'a> {
    pub args: &'a Args,
    /// How many processes there are.
    pub size: usize,
    /// The places of the rendezvous.
    pub places: &'a str,
    /// How many seconds all processes together may take to find each other.
    pub within: u64,
}

impl Common<'_> {
    /// The variables of a process.
    pub fn variables(&self, rank: usize, process: &Process) -> Variables {
        let args = self.args;
        let (local, locals) = process.local;
        let known = [
            ("DOORBELL_RANK", Some(rank.to_string())),
            ("DOORBELL_SIZE", Some(self.size.to_string())),
            ("DOORBELL_RENDEZVOUS", Some(self.places.to_owned())),
            ("DOORBELL_LOCAL_RANK", Some(local.to_string())),
            ("DOORBELL_LOCAL_SIZE", Some(locals.to_string())),
            ("DOORBELL_WITHIN", Some(self.within.to_string())),
            ("DOORBELL_DEVICE", args.device.clone()),
            ("DOORBELL_INTERFACE", args.interface.clone()),
            ("DOORBELL_ROUTES", args.routes.then(|| "1".to_owned())),
            ("DOORBELL_STALL", args.stall.map(|seconds| seconds.to_string())),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.collect()
    }
}

/// Whether a variable of the launcher's environment is of no use to a process of the job.
pub fn is_foreign(name: &str) -> bool {
    // The variables of other launchers, and of programs that start their own processes, would say
    // something else of the process.
    let others = ["PMI_", "SLURM_PROCID", "OMPI_COMM_WORLD_", "DOORBELL_JOB_"];
    NOT_TAKEN_OVER.contains(&name) || others.iter().any(|other| name.starts_with(other))
}

/// Doorbell's variables in the launcher's environment, which reach no other host by themselves.
pub fn taken_over() -> Variables {
    let all = std::env::vars_os();
    let all =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(name, _)| name.starts_with("DOORBELL_") && !is_foreign(name)).collect()
}

/// How many seconds all processes together may take to find each other: as said, or by the
/// environment.
///
/// # Errors
/// When the variable is no number.
pub fn within(said: Option<u64>) -> anyhow::Result<u64> {
    let name = "DOORBELL_WITHIN";
    match (said, std::env::var(name)) {
        (Some(seconds), _) => Ok(seconds),
        (None, Ok(found)) if !found.is_empty() => found.parse().map_err(|_| {
            anyhow::anyhow!("{name} is `{found}`: a number of whole seconds is expected")
        }),
        (None, _) => Ok(WITHIN),
    }
}
