//! Options of `bdp measure` as stored in a request, each declared once: how it is typed, its default, whether runs are compared
//! by it, and where it does not apply. The printed command, the comparison with a baseline, the report and error messages use them.

use std::borrow::Cow;
use std::fmt::Display;

use crate::case::Family;
use crate::flow::FlowSpec;
use crate::flow::socket::SocketOption;
use crate::flow::udp::{RateSearch, UdpRequest};
use crate::measurement::ends::PeerProtocol;
use crate::measurement::{Access, Direction, MeasureRequest, SshRequest, responsiveness};
use crate::units::{Nanos, typed_rate, typed_size};

/// An option of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureOption {
    /// Flag as typed: `-w`.
    pub flag: &'static str,
    /// Setting in the request.
    pub setting: Setting,
    /// Whether it differs from the default.
    pub is_given: bool,
    /// Whether it is the head of a command, and so not among the options that follow.
    pub is_head: bool,
    /// Whether runs that differ in it are not comparable.
    pub is_compared: bool,
    /// Whether it applies only to TCP.
    pub is_of_tcp: bool,
    /// Why it does not go with a download.
    pub not_download: Option<NotDownload>,
    /// Why an iperf3 server does not support it.
    pub not_iperf3: Option<Cow<'static, str>>,
    /// Why an iperf2 server does not support it.
    pub not_iperf2: Option<Cow<'static, str>>,
}

/// Why an option does not go with a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDownload {
    /// It needs a bdp at the other end.
    NeedsBdp,
    /// It has nothing to do with one.
    DoesNotApply,
}

/// Setting of an option in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A switch.
    Switch(bool),
    /// A value as typed, unquoted; `None` if omitted.
    Value(Option<String>),
}

impl MeasureOption {
    fn new(flag: &'static str, setting: Setting) -> Self {
        let is_given = !matches!(setting, Setting::Switch(false) | Setting::Value(None));
        Self {
            flag,
            setting,
            is_given,
            is_head: false,
            is_compared: true,
            is_of_tcp: false,
            not_download: None,
            not_iperf3: None,
            not_iperf2: None,
        }
    }

    /// Marks it as default if this is true.
    fn default_if(mut self, is_default: bool) -> Self {
        self.is_given &= !is_default;
        self
    }

    fn head(mut self) -> Self {
        self.is_head = true;
        self
    }

    fn not_compared(mut self) -> Self {
        self.is_compared = false;
        self
    }

    fn of_tcp(mut self) -> Self {
        self.is_of_tcp = true;
        self
    }

    fn needs_bdp(mut self) -> Self {
        self.not_download = Some(NotDownload::NeedsBdp);
        self
    }

    fn not_download(mut self) -> Self {
        self.not_download = Some(NotDownload::DoesNotApply);
        self
    }

    fn not_iperf3(mut self, why: impl Into<Cow<'static, str>>) -> Self {
        self.not_iperf3 = Some(why.into());
        self
    }

    fn not_iperf2(mut self, why: impl Into<Cow<'static, str>>) -> Self {
        self.not_iperf2 = Some(why.into());
        self
    }

    /// Returns `-w 64K`, with the value quoted by `quote`; `no -w` if it is omitted.
    pub fn text(&self, quote: impl Fn(&str) -> String) -> String {
        match &self.setting {
            Setting::Switch(true) => self.flag.to_owned(),
            Setting::Value(Some(value)) => format!("{} {}", self.flag, quote(value)),
            Setting::Switch(false) | Setting::Value(None) => format!("no {}", self.flag),
        }
    }
}

/// Returns the options that differ from their defaults.
pub fn given(request: &MeasureRequest) -> impl Iterator<Item = MeasureOption> {
    options(request).into_iter().filter(|option| option.is_given)
}

/// Returns why this server cannot serve the request, if a single option rules it out.
pub fn refusal(request: &MeasureRequest, peer: PeerProtocol) -> Option<Cow<'static, str>> {
    given(request).find_map(|option| match peer {
        PeerProtocol::Iperf3 => option.not_iperf3,
        PeerProtocol::Iperf2 => option.not_iperf2,
    })
}

/// Returns every option of a request, in the order in which a command names them. Each member is destructured, so that a new one does
/// not compile without an entry here.
pub fn options(request: &MeasureRequest) -> Vec<MeasureOption> {
    let MeasureRequest {
        host,
        port,
        peer,
        family,
        directions,
        bidirectional,
        spec,
        idle,
        bind_address,
        bind_device,
        client_port,
        near_cpus,
        far_cpus,
        url,
        ssh,
        responsiveness,
        server_output,
        access,
        ordered,
        until_settled,
        no_experiments,
        // Decided anew for each run.
        watch_loss: _,
    } = request;
    let usual = MeasureRequest::to("");
    let one_way = (!bidirectional).then_some(directions.as_slice());
    let cpus = match (near_cpus, far_cpus) {
        (near, None) => near.as_ref().map(ToString::to_string),
        (near, Some(far)) => {
            Some(format!("{}/{far}", near.as_ref().map_or_else(String::new, ToString::to_string)))
        }
    };
    let mut cpu = value("--cpu", cpus).not_download();
    if far_cpus.is_some() {
        cpu = cpu
            .not_iperf3(
                "an iperf3 server accepts no list of processors (use its own option -A); give only those of this end, --cpu 0,2-3",
            )
            .not_iperf2("an iperf2 server accepts no list of processors; give only those of this end, --cpu 0,2-3");
    }
    let mut all = of_far_end(host, *port, url.as_deref(), ssh.as_ref());
    all.extend(of_access(access.as_ref()));
    all.extend([
        switch("--iperf3", *peer == Some(PeerProtocol::Iperf3)).not_download(),
        switch("--iperf2", *peer == Some(PeerProtocol::Iperf2)).not_download(),
        switch("--responsiveness", *responsiveness),
        value(
            "--ordered",
            ordered.map(|rates| match (rates.from_bps, rates.to_bps) {
                (down, up) if down == up => typed_rate(down),
                (down, up) => format!("{}/{}", typed_rate(down), typed_rate(up)),
            }),
        ),
        cpu,
        // Output of a server is stored beside the figures.
        switch("--get-server-output", *server_output).not_compared(),
        value("--until", until_settled.then_some("settled")),
        // Experiments follow a test, and '--runs' runs none.
        switch("--no-experiments", *no_experiments).not_compared(),
        // Each direction is compared with itself.
        switch("--forward", one_way == Some(&[Direction::To])).needs_bdp().not_compared(),
        switch("-R", one_way == Some(&[Direction::From])).default_if(url.is_some()).not_compared(),
        switch("--bidir", *bidirectional).needs_bdp(),
        value("--idle", Some(seconds(*idle))).default_if(*idle == usual.idle),
        value("-B", bind_address.as_ref()),
        value("--bind-dev", bind_device.as_ref()),
        switch("-4", *family == Some(Family::Ipv4)),
        switch("-6", *family == Some(Family::Ipv6)),
        value("--cport", *client_port),
    ]);
    all.extend(of_flow(spec, *responsiveness));
    all
}

/// Returns the options about the far end and how it was started.
fn of_far_end(host: &str, port: u16, url: Option<&str>, ssh: Option<&SshRequest>) -> Vec<MeasureOption> {
    let usual = MeasureRequest::to("");
    // If ssh started the far end, it chose the host and port of the request.
    let (host, port) = match ssh {
        Some(SshRequest { data_host, data_port, .. }) => (data_host.as_deref(), *data_port),
        None => (Some(host), Some(port)),
    };
    let (destination, through, options) = match ssh {
        // The host and the port are above.
        Some(SshRequest { destination, through, options, data_host: _, data_port: _ }) => {
            (Some(destination), *through, options.as_slice())
        }
        None => (None, false, [].as_slice()),
    };
    // The first three are the head of a command.
    let mut all = vec![
        value("HOST", host).head(),
        value("a URL", url).head().of_tcp(),
        value("--ssh", destination).head().needs_bdp(),
        value("-p", port).default_if(url.is_some() || (ssh.is_none() && port == Some(usual.port))),
        switch("--through-ssh", through).of_tcp(),
    ];
    all.extend(options.iter().map(|option| value("--ssh-option", Some(option))));
    all
}

/// Returns the options about authentication, without secrets. They do not make runs incomparable: a token in the environment is unknown.
fn of_access(access: Option<&Access>) -> Vec<MeasureOption> {
    let all = match access {
        None => Vec::new(),
        Some(Access::Token) => vec![value("--token-file", Some("FILE"))],
        Some(Access::TokenFile { path }) => vec![value("--token-file", Some(path))],
        Some(Access::Login { user, public_key, pkcs1 }) => vec![
            value("--user", Some(user)),
            value("--iperf3-public-key", Some(public_key)),
            switch("--iperf3-pkcs1", *pkcs1),
        ],
    };
    all.into_iter().map(|option| option.needs_bdp().not_compared()).collect()
}

/// Returns the options about the flow of each direction.
fn of_flow(spec: &FlowSpec, responsiveness: bool) -> Vec<MeasureOption> {
    let FlowSpec {
        streams,
        duration,
        bytes,
        omit,
        interval,
        length,
        window,
        socket_buffer,
        mss,
        congestion,
        nodelay,
        dscp,
        socket,
        zerocopy,
        check_payload,
        pacing_bps,
        udp,
        // Only for flows of the lab.
        application: _,
    } = spec;
    let usual = FlowSpec::default();
    let usual_time = if responsiveness { responsiveness::USUAL_TIME } else { usual.duration };
    let counted = Nanos(duration.as_ns().saturating_sub(omit.as_ns()));
    let mut all = vec![
        value("-n", bytes.map(typed_size)),
        // With -n the time is only an upper bound.
        value("-t", bytes.is_none().then(|| seconds(counted))).default_if(counted == usual_time),
        value("-O", Some(seconds(*omit))).default_if(*omit == usual.omit),
        value("-P", Some(streams)).default_if(*streams == usual.streams || responsiveness),
        value("-w", window.map(|window| typed_size(window.into()))).of_tcp().not_iperf3(
            "-w is the window on the wire, which an iperf3 server can't set; for -w of iperf3 use --sockbuf",
        ),
        value("--sockbuf", socket_buffer.map(typed_size)),
        value("-M", *mss).of_tcp(),
        value("-C", congestion.as_ref()).of_tcp().needs_bdp(),
        switch("-N", *nodelay).not_download(),
        value("--dscp", *dscp).not_download(),
    ];
    all.extend(socket.iter().map(|(option, value)| of_socket(option, value)));
    all.extend([
        value("--zerocopy", Some(zerocopy.name()))
            .default_if(*zerocopy == usual.zerocopy)
            .of_tcp()
            .not_download(),
        switch("--check-payload", *check_payload)
            .of_tcp()
            .not_download()
            .not_iperf3("an iperf3 server sends no verifiable payload; --check-payload needs 'bdp serve'")
            .not_iperf2("an iperf2 server sends no verifiable payload; --check-payload needs 'bdp serve'"),
    ]);
    all.extend(match udp {
        None => vec![
            switch("-u", false),
            value("-b", pacing_bps.map(typed_rate)).needs_bdp(),
            value("-l", Some(typed_size(*length))).default_if(*length == usual.length).needs_bdp(),
        ],
        Some(udp) => of_datagrams(udp),
    });
    all.push(value("-i", Some(seconds(*interval))).default_if(*interval == usual.interval));
    all
}

/// Returns a socket option, which only bdp sets at the other end.
fn of_socket(option: &SocketOption, number: Option<u64>) -> MeasureOption {
    let SocketOption { flag, kernel, is_of_tcp, .. } = *option;
    let lacks = |server: &str| format!("an {server} server does not set {kernel}; {flag} needs 'bdp serve'");
    let all = value(flag, number.map(|number| option.typed(number)))
        .not_download()
        .not_iperf3(lacks("iperf3"))
        .not_iperf2(lacks("iperf2"));
    if is_of_tcp { all.of_tcp() } else { all }
}

fn of_datagrams(udp: &UdpRequest) -> Vec<MeasureOption> {
    let UdpRequest { rate_bps, search, datagram_bytes, dont_fragment } = udp;
    let bitrate = match search {
        Some(_) => value("-b", Some("auto"))
            .not_iperf3("-b auto needs 'bdp serve' at the other end; give a rate, for example -b 100M")
            .not_iperf2("-b auto needs 'bdp serve' at the other end; give a rate, for example -b 100M"),
        None => value("-b", Some(rate_bps.map_or_else(|| "0".to_owned(), typed_rate))),
    };
    let (loss_ratio, trial) = search.map(|RateSearch { loss_ratio, trial }| (loss_ratio, trial)).unzip();
    vec![
        switch("-u", true),
        bitrate.needs_bdp(),
        value("--loss-ratio", loss_ratio).default_if(loss_ratio == Some(0.0)),
        value("--trial-time", trial.map(seconds)).default_if(trial == Some(RateSearch::usual_trial())),
        value("-l", *datagram_bytes).needs_bdp(),
        switch("--dont-fragment", *dont_fragment),
    ]
}

fn value(flag: &'static str, value: Option<impl Display>) -> MeasureOption {
    MeasureOption::new(flag, Setting::Value(value.map(|value| value.to_string())))
}

fn switch(flag: &'static str, is_on: bool) -> MeasureOption {
    MeasureOption::new(flag, Setting::Switch(is_on))
}

fn seconds(time: Nanos) -> String {
    time.as_secs_f64().to_string()
}
