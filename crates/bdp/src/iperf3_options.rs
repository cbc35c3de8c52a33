//! Options of iperf3 that bdp lacks under their names: the answer to each, so that a broken script says how to fix it.

/// The end that the command line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// Translation of an option of iperf3 to bdp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// This option, with the same value.
    Option(&'static str),
    /// Omitted without loss.
    Nothing,
    /// There is none; the answer says why.
    Missing,
}

/// An option of iperf3.
#[derive(Debug)]
pub struct Foreign {
    short: Option<&'static str>,
    long: &'static str,
    /// Whether it takes a value.
    pub takes_value: bool,
    of: &'static [Role],
    pub becomes: Becomes,
    /// Answer to it in bdp.
    pub answer: &'static str,
}

const CLIENT: &[Role] = &[Role::Client];
const SERVER: &[Role] = &[Role::Server];
const BOTH: &[Role] = &[Role::Client, Role::Server];

use Becomes::{Missing, Nothing, Option as Ours};

#[rustfmt::skip]
const ALL: [Foreign; 34] = [
    row(Some("-F"), "--file", true, BOTH, Missing, "bdp can't send a file; --check-payload sends and checks known bytes"),
    row(Some("-I"), "--pidfile", true, BOTH, Missing, "bdp writes no PID file; use $! in a shell after 'bdp serve &', or systemd"),
    row(Some("-L"), "--flowlabel", true, CLIENT, Missing, "the kernel chooses the IPv6 flow label here; --dscp marks the packets"),
    row(Some("-m"), "--mptcp", false, BOTH, Missing, "bdp measures TCP and UDP, not MPTCP; 'iperf3 -m -c HOST' to 'bdp serve' falls back to TCP"),
    row(Some("-X"), "--xbind", true, CLIENT, Missing, "it is for SCTP, and bdp measures TCP and UDP; for these use -B"),
    row(None, "--sctp", false, CLIENT, Missing, "bdp measures TCP and UDP, not SCTP"),
    row(None, "--nstreams", true, CLIENT, Ours("-P"), "it is for SCTP streams; -P sets the number of connections"),
    row(None, "--logfile", true, BOTH, Missing, "redirect the output instead: '> FILE'; --json-stream writes one line per event"),
    row(None, "--timestamps", false, BOTH, Missing, "--json-stream contains the time of each event; '| ts' adds it to lines"),
    row(None, "--connect-timeout", true, CLIENT, Nothing, "bdp uses a fixed connect timeout of 3 s"),
    row(None, "--rcv-timeout", true, BOTH, Nothing, "bdp uses fixed timeouts: 8 s for a silent direction, 10 s for a silent server"),
    row(None, "--snd-timeout", true, CLIENT, Nothing, "bdp uses a fixed timeout: 8 s for a silent direction"),
    row(None, "--fq-rate", true, CLIENT, Ours("-b"), "-b paces TCP, with fq if the device has it"),
    row(None, "--no-fq-socket-pacing", false, CLIENT, Nothing, "omit -b for no pacing"),
    row(None, "--pacing-timer", true, CLIENT, Nothing, "bdp paces by the kernel or by the time of each write; there is no timer to set"),
    row(None, "--repeating-payload", false, CLIENT, Nothing, "--check-payload sends a known pattern and checks it"),
    row(None, "--title", true, CLIENT, Ours("--label"), "-T and --label name a run; --title is for the page of --report"),
    row(None, "--extra-data", true, CLIENT, Ours("--label"), "use --label to add a text to the result"),
    row(None, "--udp-counters-64bit", false, CLIENT, Nothing, "datagram counters always have 64 bits"),
    row(None, "--skip-rx-copy", false, BOTH, Nothing, "use --zerocopy to choose the send method"),
    row(None, "--gsro", false, BOTH, Nothing, "bdp always uses the fastest available method to send datagrams"),
    row(None, "--cntl-ka", false, BOTH, Nothing, "bdp's control connection needs no keepalive"),
    row(None, "--json-stream-full-output", false, BOTH, Ours("--json-stream"), "the last event of --json-stream is the whole measurement"),
    row(Some("-D"), "--daemon", false, BOTH, Missing, "'bdp serve' runs in the foreground: use 'bdp serve &', or a systemd service"),
    row(Some("-B"), "--bind", true, SERVER, Ours("--listen"), "use --listen ADDR:PORT"),
    row(None, "--server-bitrate-limit", true, SERVER, Ours("--max-rate"), "use --max-rate to limit the rate of a flow"),
    row(None, "--server-max-duration", true, SERVER, Ours("--max-duration"), "use --max-duration to limit the duration of a flow"),
    row(None, "--idle-timeout", true, SERVER, Nothing, "'bdp serve' serves several clients in parallel and ends silent ones"),
    row(Some("-i"), "--interval", true, SERVER, Nothing, "the server prints one line per session; results are printed by the client"),
    row(Some("-f"), "--format", true, SERVER, Nothing, "the server prints one line per session; results are printed by the client"),
    row(Some("-V"), "--verbose", false, SERVER, Nothing, "the server prints one line per session; results are printed by the client"),
    row(Some("-J"), "--json", false, SERVER, Nothing, "the server prints one line per session; --metrics exports counters to Prometheus"),
    row(Some("-A"), "--affinity", true, SERVER, Nothing, "use --cpu NEAR/FAR of the client to pin threads at both ends, or 'taskset -c LIST bdp serve' for the whole server"),
    row(Some("-T"), "--title", true, SERVER, Nothing, "use --label of the client to name a run"),
];

const fn row(
    short: Option<&'static str>,
    long: &'static str,
    takes_value: bool,
    of: &'static [Role],
    becomes: Becomes,
    answer: &'static str,
) -> Foreign {
    Foreign { short, long, takes_value, of, becomes, answer }
}

/// Finds the option of this name, with or without a value in the same word.
pub fn find(flag: &str, role: Role) -> Option<&'static Foreign> {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    ALL.iter().find(|row| row.of.contains(&role) && (row.long == name || row.short == Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_by_both_names_at_their_end() {
        assert_eq!(find("-F", Role::Client).unwrap().long, "--file");
        assert_eq!(find("--logfile=x", Role::Client).unwrap().long, "--logfile");
        assert_eq!(find("-D", Role::Server).unwrap().long, "--daemon");
        assert!(find("-B", Role::Client).is_none(), "ours has it too");
        assert!(find("--nosuch", Role::Client).is_none());
    }
}
