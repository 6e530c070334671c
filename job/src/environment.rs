//! The environment variables of a process, which tell how it was started.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::JobError;

/// The environment variables of a process.
#[derive(Clone, Default, Debug)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process. Variables whose values are empty or no text count as not
    /// set.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        std::env::vars_os().filter_map(text).collect()
    }

    /// The value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
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
        Self(variables.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }
}
