//! Tells the command by which of Cargo's profiles it is built.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // This script's folder for what it makes is `target/…/PROFILE/build/PACKAGE-HASH/out`. No
    // variable has the name: `PROFILE` is `release` for all profiles that inherit from that.
    let out = env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.and_then(|name| name.to_str()).unwrap_or("unknown");
    println!("cargo::rustc-env=DOORBELL_PROFILE={profile}");
}
