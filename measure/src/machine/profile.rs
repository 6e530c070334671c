//! The profile of Cargo's that the command was built by.

/// The name of the profile that Cargo has built the command by.
pub const PROFILE: &str = env!("DOORBELL_PROFILE");

/// The profile, with what it means for the figures.
pub fn built_by() -> String {
    let what = match PROFILE {
        "dist" => "which optimises the whole program",
        "release" => "not `dist`, which optimises the whole program and takes minutes to build",
        _ => "not `release` or `dist`, so these figures say little",
    };
    format!("built by the profile `{PROFILE}`, {what}")
}
