//! `bdp __far ADDR:PORT`: the server that `bdp measure --ssh` runs on the remote machine. Internal.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use bdp_agent::server::access::{AccessRules, PlaceLimits};
use bdp_agent::server::{Server, ServerOptions};
use bdp_model::units::Nanos;
use bdp_run::measure::ssh::Listening;
use bdp_sys::random;
use bdp_wire::proof::hex;
use bdp_wire::session::Limits;

/// The hidden subcommand.
pub const NAME: &str = bdp_run::measure::ssh::SUBCOMMAND;

/// Serves until standard input ends. Prints its address, or why it can't serve, as a line of JSON.
pub fn run(listen: Option<&str>) -> ExitCode {
    // For ps and top, which would otherwise show "9".
    let _ = std::fs::write("/proc/self/comm", "bdp-far");
    let Some(listen) = listen.and_then(|text| text.parse().ok()) else {
        crate::output::note(&format!("bdp: {NAME} is for internal use by 'bdp measure --ssh'"));
        return ExitCode::from(2);
    };
    match serve(listen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bdp-failed {error}");
            ExitCode::from(3)
        }
    }
}

fn serve(listen: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
    let token = hex(&random::bytes::<16>()?);
    let limits = Limits { duration: Nanos::secs(24 * 3600), streams: 4096, rate: None };
    let options = ServerOptions {
        listen,
        token: Some(token.clone()),
        limits,
        access: AccessRules::default(),
        // One session after the other; the previous one may be ending.
        places: PlaceLimits {
            sessions: 2,
            sessions_per_address: 2,
            streams_per_address: 2 * limits.streams,
            ..PlaceLimits::default()
        },
        tuning: None,
        once: false,
    };
    let server = Server::bind(options, Vec::new(), |_| {})?;
    let listening =
        Listening { bdp: env!("CARGO_PKG_VERSION").to_owned(), port: server.address().port(), token };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&listening)?)?;
    out.flush()?;
    drop(out);
    let stopper = server.stopper();
    std::thread::Builder::new().name("bdp-stdin".to_owned()).spawn(move || {
        // Nothing more is expected: any read is the end.
        let mut room = [0; 64];
        while matches!(std::io::stdin().lock().read(&mut room), Ok(1..)) {}
        stopper.stop();
    })?;
    Ok(server.run()?)
}
