//! How much a run of the tests tries: enough to find what breaks, or all that is worth trying.

/// The variable of the environment that asks for every seed, repetition and combination.
const VARIABLE: &str = "DOORBELL_THOROUGH";

/// Whether the run was asked to be thorough: the variable `DOORBELL_THOROUGH` is set, and is
/// neither empty nor `0`.
///
/// A quick run makes the same promises of the product as a thorough one and checks each of them,
/// with fewer seeds and repetitions.
pub fn is_thorough() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// How much of something to try: `quick` as a rule, `thorough` where the run
/// [is asked to be](is_thorough).
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
