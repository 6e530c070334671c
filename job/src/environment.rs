//! The environment variables of a process, which tell how it was started.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::error::JobError;
use crate::sys;

/// The variable that names the descriptor of a connection to a launcher.
pub(crate) const PMI_FD: &str = "PMI_FD";

/// The environment variables of a process.
///
/// A variable that names a descriptor, as `PMI_FD` does, counts only in the
/// [environment of this process](Self::of_process): only whoever has started the process knows what
/// it has inherited. A connection that this program has itself is [given](Self::with_launcher).
#[derive(Clone, Default, Debug)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    launcher: Option<Arc<UnixStream>>,
}

impl Environment {
    /// The environment of this process. Variables whose values are empty or no text count as not
    /// set.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        std::env::vars_os().filter_map(text).collect()
    }

    /// Sets the connection to a launcher that speaks PMI-1, which is used instead of the descriptor
    /// that `PMI_FD` names.
    #[must_use]
    pub fn with_launcher(self, connection: UnixStream) -> Self {
        Self { launcher: Some(Arc::new(connection)), ..self }
    }

    /// Returns whether a connection to a launcher that speaks PMI-1 was given, or `PMI_FD` names
    /// one.
    pub(crate) fn has_launcher(&self) -> bool {
        self.launcher.is_some() || self.get(PMI_FD).is_some()
    }

    /// The connection to a launcher that speaks PMI-1.
    pub(crate) fn launcher(&self) -> Result<UnixStream, JobError> {
        if let Some(launcher) = &self.launcher {
            let system = |why| JobError::System { what: "using the launcher's connection", why };
            return launcher.try_clone().map_err(system);
        }
        match sys::inherited(PMI_FD)? {
            Some(launcher) if std::env::var(PMI_FD).ok().as_deref() == self.get(PMI_FD) => {
                Ok(launcher)
            }
            _ => Err(JobError::Environment {
                variable: PMI_FD,
                found: self.get(PMI_FD).unwrap_or_default().to_owned(),
                expected: "only the environment that this process was started with may name a \
                           descriptor",
            }),
        }
    }

    /// The value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// How long all processes together may take to come, if `DOORBELL_WITHIN` is set.
    pub(crate) fn within(&self) -> Result<Option<Duration>, JobError> {
        let seconds = self.number("DOORBELL_WITHIN", "a decimal number of seconds")?;
        Ok(seconds.map(Duration::from_secs))
    }

    /// The value of a variable that is a number; `None` if the variable is not set.
    pub(crate) fn number<T: std::str::FromStr>(
        &self,
        variable: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, JobError> {
        let Some(found) = self.get(variable) else { return Ok(None) };
        let wrong = |_| JobError::Environment { variable, found: found.to_owned(), expected };
        found.parse().map(Some).map_err(wrong)
    }

    /// The value of a variable that is a number, and has to be set when `beside` is set.
    pub(crate) fn needed<T: std::str::FromStr>(
        &self,
        variable: &'static str,
        beside: &'static str,
    ) -> Result<T, JobError> {
        self.number(variable, "a decimal number")?.ok_or(JobError::Lacking { variable, beside })
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        let variables = variables.into_iter().filter(|(_, value)| !value.is_empty());
        Self { variables: variables.collect(), launcher: None }
    }
}
