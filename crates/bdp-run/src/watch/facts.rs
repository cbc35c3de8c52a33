//! Derives the facts of a socket from the readings of the last seconds.

use bdp_flow::connection;
use bdp_flow::loss_episodes::LossEpisodes;
use bdp_flow::sender_reading;
use bdp_model::facts::{End, Facts, Role as Part, SocketFacts, Source};
use bdp_model::finding::threshold::SAMPLES_MIN;
use bdp_model::flow::FlowSpec;
use bdp_model::measurement::HostFacts;
use bdp_model::record::{LossEpisode, ReceiverSample, SenderSample, Transfer, WindowReport};
use bdp_model::units::Nanos;
use bdp_model::watch::Role;
use bdp_sys::tcp_info::TcpInfo;

use super::account;
use super::history::{History, Reading};

/// How this machine is called.
pub(super) const HERE: &str = "this host";

/// What is known of a socket besides its readings.
pub(super) struct Known<'a> {
    /// How this end is called, and the other.
    pub here: &'a str,
    pub there: String,
    pub congestion: &'a str,
    pub send_buffer: Option<u32>,
    pub receive_buffer: Option<u32>,
    /// This end's role in the connection.
    pub own: Part,
    /// A rate limit counts from this share of it on; what this program sets in advance may be far away.
    pub limit_counts_from: f64,
    /// Facts about the socket.
    pub socket: SocketFacts,
    /// Facts about this machine; `None` for a socket of another network namespace, which has its own settings.
    pub host: Option<&'a HostFacts>,
}

/// Returns what this end did at these moments.
pub(super) fn role(moments: &[(u64, &Reading, TcpInfo)]) -> Role {
    let (Some((_, _, first)), Some((_, last, now))) = (moments.first(), moments.last()) else {
        return Role::Quiet;
    };
    // A connection being established is active.
    if last.is_being_made() {
        return Role::Sending;
    }
    // If one end spoke before watching began and has no answer, that answer is what is waited for.
    let is_opening = moments.first().is_some_and(|(_, reading, _)| reading.is_opening());
    let since = |of: fn(&TcpInfo) -> Option<u64>| {
        let before = if is_opening { 0 } else { of(first).unwrap_or(0) };
        of(now).unwrap_or(0).saturating_sub(before)
    };
    let (sent, received) = (since(|i| i.bytes_acked), since(|i| i.bytes_received));
    match (sent, received) {
        // Queued data that does not move is the question itself.
        (0, 0) if last.queued > 0 => Role::Sending,
        // Data to send remains urgent whatever arrives meanwhile.
        (0, _) if last.queued > 0 && moments.iter().all(|(_, reading, _)| reading.queued > 0) => {
            Role::Sending
        }
        (0, 0) if last.unread > 0 => Role::Receiving,
        (0, 0) => Role::Quiet,
        _ if sent >= received => Role::Sending,
        _ => Role::Receiving,
    }
}

/// Returns the facts of the last `span_ns`; `None` for an idle socket or too short a time.
pub(super) fn facts(history: &History, known: &Known<'_>, span_ns: u64) -> Option<Facts> {
    let moments = history.moments(span_ns);
    let role = role(&moments);
    let (&(from, _, before), &(until, _, now)) = (moments.first()?, moments.last()?);
    let took_ns = until.checked_sub(from).filter(|&ns| ns > 0)?;
    let is_being_made = moments.last().is_some_and(|(_, last, _)| last.is_being_made());
    if moments.len() < SAMPLES_MIN && !is_being_made {
        return None;
    }
    if role == Role::Quiet {
        return None;
    }
    let sending = role == Role::Sending;
    let longest = moments.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(0);
    let received = receiver_samples(&moments, sending, is_being_made)?;
    let bytes = received.last()?.bytes;
    let goodput_bps = bytes as f64 * 8e9 / took_ns as f64;
    let since = |of: fn(&TcpInfo) -> Option<u32>| Some(u64::from(of(&now)?.checked_sub(of(&before)?)?));
    let here = End {
        name: known.here.to_owned(),
        host: known.host.cloned().unwrap_or_default(),
        window_scaling: now.window_scaling,
        socket: Some(known.socket),
        ..End::default()
    };
    let there = End { name: known.there.clone(), ..End::default() };
    let (sender, receiver) = if sending { (here, there) } else { (there, here) };
    let mut facts = Facts {
        source: Source::Watched,
        // A late reading is not a stall.
        asked: FlowSpec { interval: Nanos(longest), ..FlowSpec::default() },
        sender,
        receiver,
        bytes,
        paced_bps: now
            .max_pacing_rate_bps
            .filter(|&limit| sending && goodput_bps >= known.limit_counts_from * limit as f64),
        transfer: Transfer {
            goodput_bps,
            duration_ns: took_ns,
            stream_goodput_bps: vec![goodput_bps],
            window: WindowReport {
                socket_buffer_bytes: known.receive_buffer.filter(|_| !sending).map(u64::from),
                ..WindowReport::default()
            },
            connection: if sending { connection::of_sender(&now) } else { connection::of_receiver(&now) },
            retransmits: since(|i| i.total_retrans).filter(|_| sending),
            needless_retransmits: since(|i| i.dsack_dups).filter(|_| sending),
            congestion_control: if sending { known.congestion.to_owned() } else { String::new() },
            mss_bytes: now.snd_mss.filter(|_| sending).map(u64::from),
            send_buffer_bytes: known.send_buffer.filter(|_| sending).map(u64::from),
            received,
            sent: if sending {
                moments.iter().map(|(at, _, info)| sender_sample(at - from, info)).collect()
            } else {
                Vec::new()
            },
            loss_episodes: if sending { episodes(&moments, from, longest) } else { Vec::new() },
            ..Transfer::default()
        },
        ..Facts::default()
    };
    let (conversation, socket) = account::of(&moments, sending, known.own, &facts, known.socket)?;
    facts.conversation = Some(conversation);
    let here = if sending { &mut facts.sender } else { &mut facts.receiver };
    here.socket = Some(socket);
    Some(facts)
}

/// Returns what had arrived at each reading since the first; `None` if the kernel does not count it.
fn receiver_samples(
    moments: &[(u64, &Reading, TcpInfo)],
    sending: bool,
    is_being_made: bool,
) -> Option<Vec<ReceiverSample>> {
    let came = |reading: &Reading, info: &TcpInfo| {
        let bytes = match sending {
            // At the sender, what the other end's kernel has acknowledged stands for what arrived.
            true => info.bytes_acked,
            false => info.bytes_received.map(|bytes| bytes.saturating_sub(u64::from(reading.unread))),
        };
        bytes.or(is_being_made.then_some(0))
    };
    let &(from, first, before) = moments.first()?;
    let start = came(first, &before)?;
    let sample = |(at, reading, info): &(u64, &Reading, TcpInfo)| {
        let own = (!sending).then_some(*info);
        Some(ReceiverSample {
            at_ns: at - from,
            bytes: came(reading, info)?.saturating_sub(start),
            rcv_wnd_bytes: own.and_then(|i| i.rcv_wnd).map(u64::from),
            out_of_order: own.and_then(|i| i.rcv_out_of_order).map(u64::from),
            unread_bytes: (!sending).then_some(u64::from(reading.unread)),
            rtt_ns: own.and_then(|i| i.rcv_rtt_ns),
            ..ReceiverSample::default()
        })
    };
    Some(moments.iter().filter_map(sample).collect())
}

/// Returns the congestion events, if readings are no farther apart than a round trip: for others, what preceded them
/// is unknown.
fn episodes(moments: &[(u64, &Reading, TcpInfo)], from: u64, longest_ns: u64) -> Vec<LossEpisode> {
    let rtt_ns = moments.iter().filter_map(|(_, _, info)| info.rtt_ns).max().unwrap_or(0);
    if rtt_ns < longest_ns {
        return Vec::new();
    }
    LossEpisodes::of(moments.iter().map(|(at, _, info)| (at - from, info)))
}

fn sender_sample(at_ns: u64, info: &TcpInfo) -> SenderSample {
    let mut sample = SenderSample {
        at_ns,
        acked_bytes: info.bytes_acked,
        retransmits: info.total_retrans.map(u64::from),
        reorder_seen: info.reorder_seen.map(u64::from),
        needless_retransmits: info.dsack_dups.map(u64::from),
        delivered: info.delivered_segments.map(u64::from),
        delivered_ce: info.delivered_ce_segments.map(u64::from),
        timeouts: info.timeouts.map(u64::from),
        ..SenderSample::default()
    };
    sender_reading::note_connection(&mut sample, info);
    // A socket of others may have sent nothing yet.
    sample.srtt_ns = sample.srtt_ns.filter(|&ns| ns > 0);
    sample.min_rtt_ns = sample.min_rtt_ns.filter(|&ns| ns > 0);
    sample
}
