//! Options of iperf3 that bdp does not have under their names: what answers each, so that a script that breaks says how it is mended.

/// The end whose command line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// What becomes of an option where a command line of iperf3 is written as one of bdp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// This option, with the same value.
    Option(&'static str),
    /// Nothing is lost without it.
    Nothing,
    /// There is none; the answer says why.
    Missing,
}

/// An option of iperf3.
#[derive(Debug)]
pub struct Foreign {
    short: Option<&'static str>,
    long: &'static str,
    /// Whether a value follows.
    pub takes_value: bool,
    of: &'static [Role],
    pub becomes: Becomes,
    /// What answers it here.
    pub answer: &'static str,
}

const CLIENT: &[Role] = &[Role::Client];
const SERVER: &[Role] = &[Role::Server];
const BOTH: &[Role] = &[Role::Client, Role::Server];

use Becomes::{Missing, Nothing, Option as Ours};

#[rustfmt::skip]
const ALL: [Foreign; 34] = [
    row(Some("-F"), "--file", true, BOTH, Missing, "bdp sends no file; --check-payload sends known bytes and checks each"),
    row(Some("-I"), "--pidfile", true, BOTH, Missing, "bdp writes no PID file; a shell has the PID in $! after 'bdp serve &', systemd keeps it by itself"),
    row(Some("-L"), "--flowlabel", true, CLIENT, Missing, "the kernel chooses the IPv6 flow label here; --dscp marks the packets"),
    row(Some("-m"), "--mptcp", false, BOTH, Missing, "bdp measures TCP and UDP, not MPTCP; 'iperf3 -m -c HOST' measures it to 'bdp serve' over plain TCP"),
    row(Some("-X"), "--xbind", true, CLIENT, Missing, "it binds SCTP, and bdp measures TCP and UDP; -B binds these"),
    row(None, "--sctp", false, CLIENT, Missing, "bdp measures TCP and UDP, not SCTP"),
    row(None, "--nstreams", true, CLIENT, Ours("-P"), "it counts streams of SCTP; -P is the number of connections"),
    row(None, "--logfile", true, BOTH, Missing, "redirect the output instead: '> FILE'; --json-stream writes a line for each event"),
    row(None, "--timestamps", false, BOTH, Missing, "--json-stream has the time of each event; '| ts' adds it to lines"),
    row(None, "--connect-timeout", true, CLIENT, Nothing, "bdp gives up a connection after 3 s"),
    row(None, "--rcv-timeout", true, BOTH, Nothing, "bdp ends a direction that is silent for 8 s, and a server that does not answer within 10 s"),
    row(None, "--snd-timeout", true, CLIENT, Nothing, "bdp ends a direction that is silent for 8 s"),
    row(None, "--fq-rate", true, CLIENT, Ours("-b"), "-b paces TCP, by fq where the device has it"),
    row(None, "--no-fq-socket-pacing", false, CLIENT, Nothing, "leave -b out for no pacing"),
    row(None, "--pacing-timer", true, CLIENT, Nothing, "bdp paces by the kernel or by the time of each write, without a timer to set"),
    row(None, "--repeating-payload", false, CLIENT, Nothing, "--check-payload sends a known pattern and checks it"),
    row(None, "--title", true, CLIENT, Ours("--label"), "-T and --label name a run; --title is of the page of --report"),
    row(None, "--extra-data", true, CLIENT, Ours("--label"), "--label puts a text into the result"),
    row(None, "--udp-counters-64bit", false, CLIENT, Nothing, "counters of datagrams have 64 bits here"),
    row(None, "--skip-rx-copy", false, BOTH, Nothing, "--zerocopy chooses how bytes get to the kernel"),
    row(None, "--gsro", false, BOTH, Nothing, "bdp takes the fastest way to send datagrams that there is"),
    row(None, "--cntl-ka", false, BOTH, Nothing, "the control connection needs no keepalive here"),
    row(None, "--json-stream-full-output", false, BOTH, Ours("--json-stream"), "--json-stream ends with the whole measurement"),
    row(Some("-D"), "--daemon", false, BOTH, Missing, "bdp serve stays in the foreground: 'bdp serve &', or a service of systemd"),
    row(Some("-B"), "--bind", true, SERVER, Ours("--listen"), "--listen ADDR:PORT says where the server listens"),
    row(None, "--server-bitrate-limit", true, SERVER, Ours("--max-rate"), "--max-rate bounds the rate of a flow"),
    row(None, "--server-max-duration", true, SERVER, Ours("--max-duration"), "--max-duration bounds the time of a flow"),
    row(None, "--idle-timeout", true, SERVER, Nothing, "bdp serve serves several clients at once and ends silent ones by itself"),
    row(Some("-i"), "--interval", true, SERVER, Nothing, "the server prints a line for each session; figures are the client's"),
    row(Some("-f"), "--format", true, SERVER, Nothing, "the server prints a line for each session; figures are the client's"),
    row(Some("-V"), "--verbose", false, SERVER, Nothing, "the server prints a line for each session; figures are the client's"),
    row(Some("-J"), "--json", false, SERVER, Nothing, "the server prints a line for each session; --metrics serves its counters to Prometheus"),
    row(Some("-A"), "--affinity", true, SERVER, Nothing, "the client's --cpu NEAR/FAR keeps both ends' threads to processors; 'taskset -c LIST bdp serve' the whole server"),
    row(Some("-T"), "--title", true, SERVER, Nothing, "--label of the client names a run"),
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

/// The option of this name, with or without a value in the same word.
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
