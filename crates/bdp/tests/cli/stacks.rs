//! `bdp lab stacks`: which kernels there are, and how to come by the others.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Bench, start};

#[test]
fn a_kernel_that_is_missing_has_its_command_and_one_that_is_there_its_version() {
    let bench = Bench::new();
    let folder = bench.path("kernels");
    fs::create_dir(&folder).unwrap();
    let listed = |arguments: &str| {
        let mut command = bench.bdp(arguments);
        command.env("BDP_KERNELS", &folder);
        start(command).wait()
    };
    let text = listed("lab stacks");
    assert_eq!(text.code(), 0, "{}", text.err);
    for wanted in
        ["linux       real", "make kernel LINUX=6.1 ", "make kernel LINUX=6.12 ", "make kernel LINUX=7.2 "]
    {
        assert!(text.out.contains(wanted), "{wanted}: {}", text.out);
    }
    let content = "CONFIG_UML=y\n\0CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n\0CONFIG_TCP_CONG_BBR=y\n\0Linux version 6.12.117 (a)\n\0";
    let kernel = folder.join("linux-6.12");
    fs::write(&kernel, content).unwrap();
    let text = listed("lab stacks");
    let way_out = format!("'chmod +x {}' lets it", kernel.display());
    assert!(text.out.contains(&way_out), "{}", text.out);
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
    let value: Value = listed("lab stacks --json").json();
    let stack =
        value["stacks"].as_array().unwrap().iter().find(|stack| stack["name"] == "linux-6.12").unwrap();
    assert_eq!(stack["version"], "6.12.117");
    assert_eq!(stack["congestion_controls"], serde_json::json!(["bbr", "reno"]));
    assert_eq!((&stack["default"], &stack["repeatable"]), (&true.into(), &false.into()));
}
