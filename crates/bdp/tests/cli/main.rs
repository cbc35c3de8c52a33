//! The command line as people run it: one program of all black-box tests, which links once and runs them side by side.
//! Those of behaviour in real time are `../live`.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod applications;
mod calc;
mod capture;
mod compare;
mod documents;
mod download;
mod endless;
mod exact;
mod exec;
mod export;
mod faults;
mod faults_explained;
mod forged;
mod guest_program;
mod guide;
mod hosts;
mod interrupted;
mod judged;
mod lab;
mod latency;
mod logins;
mod machines;
mod manual;
mod measure;
mod metrics;
mod over_time;
mod package;
mod path;
mod path_mtu;
mod pcap;
mod pcap_live;
mod pcap_pair;
mod ping;
mod protocol;
mod report;
mod requests;
mod resume;
mod routers;
mod runs;
mod serve;
mod ssh;
mod stacks;
mod stepped;
mod strangers;
mod stream;
mod sweep;
mod switches;
mod traffic;
mod unprivileged;
mod virtual_clock;
mod watch;
