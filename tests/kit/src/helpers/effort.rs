//! The thoroughness of a run of the tests: how many seeds and repetitions are tried.

/// The environment variable that asks for every seed, repetition and combination.
const VARIABLE: &str = "DOORBELL_THOROUGH";

/// Returns whether the run is to be thorough: the variable `DOORBELL_THOROUGH` is set, and is
/// neither empty nor `0`.
///
/// A quick run checks the same properties as a thorough one, with fewer seeds and repetitions.
pub fn is_thorough() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Chooses a count for this run of the tests: `quick` as a rule, `thorough` if the run [is
/// thorough](is_thorough).
///
/// ```
/// for seed in 0..doorbell_kit::effort(100, 10_000) {
///     // …
/// #   let _: u64 = seed;
/// }
/// ```
pub fn effort<T>(quick: T, thorough: T) -> T {
    if is_thorough() { thorough } else { quick }
}
