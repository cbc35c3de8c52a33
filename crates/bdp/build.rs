//! The version that `bdp --version` tells: with the commit, where the build is told of it by `BDP_COMMIT`. And how programs that tests start are
//! linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BDP_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = std::env::var("BDP_COMMIT").ok().filter(|commit| !commit.is_empty());
    let told = commit.map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=BDP_VERSION={told}");
    // Tests start bdp and themselves thousands of times in guests, where each page that a start writes to is a fault, and each fault three
    // round trips to the guest's kernel: at a fixed address there are 130,000 addresses less to be put right.
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ARCH", "x86_64") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
