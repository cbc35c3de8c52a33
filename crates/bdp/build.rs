//! The version that `bdp --version` tells: with the commit, where the build is told of it by `BDP_COMMIT`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BDP_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = std::env::var("BDP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let told = commit.map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=BDP_VERSION={told}");
}
