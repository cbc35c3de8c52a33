//! What each managed queue does with one mixed load, to the nanosecond: a seed means the same in every version.

use bdp_link::{End, Link};
use bdp_model::link::queue::Queue;
use bdp_model::link::{DirectionConfig, QueueLimit};
use bdp_model::units::Nanos;

use crate::managed::{datagram, number};
use crate::{drain, symmetric, wire};

/// FNV-1a.
fn digest(hash: u64, word: u64) -> u64 {
    word.to_le_bytes()
        .iter()
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The digest of all departures, and the numbers dropped for lack of room, dropped by decision, and marked.
type Decisions = (u64, [u64; 3]);

/// Six flows of several lengths and ECN fields at 8 Mbit/s, in bursts of overload with pauses.
fn decisions(queue: Queue, limit: QueueLimit) -> Decisions {
    let direction = DirectionConfig { queue: Some(queue), limit, ..wire(8_000_000) };
    let mut link = Link::new(&symmetric(direction), 7);
    let mut departed = Vec::new();
    let mut now = Nanos::ZERO;
    for n in 0..20_000u64 {
        let mixed = digest(0xcbf2_9ce4_8422_2325, n);
        now += Nanos(mixed % 1_100_000 + if n % 4_000 == 3_999 { 3_000_000_000 } else { 0 });
        while link.next_event().is_some_and(|at| at <= now) {
            departed.extend(link.pop(now));
        }
        let flow = (mixed >> 20) % 6;
        let ecn = [0, 2, 1, 0, 2, 0][flow as usize] | [0, 0, 0, 46 << 2, 0, 8 << 2][flow as usize];
        link.enqueue(End::A, datagram(n, 60 + (mixed >> 32) as usize % 1_400, flow as u16, ecn), now);
    }
    departed.extend(drain(&mut link));
    let hash = departed.iter().fold(0xcbf2_9ce4_8422_2325, |hash, departure| {
        let packet = &departure.packet;
        [departure.due.as_ns(), number(packet), u64::from(packet.data[1])].into_iter().fold(hash, digest)
    });
    let counters = link.counters(End::A);
    (hash, [counters.queue_dropped, counters.aqm_dropped, counters.marked])
}

/// With room for all packets, and for 60.
#[test]
fn each_queue_decides_as_ever() {
    let pinned: [(&str, [Decisions; 2]); 6] = [
        ("codel", [(0xed06_2b6c_665f_bfbe, [0, 1073, 0]), (0xca3f_22fc_9d8e_d97c, [4636, 659, 0])]),
        ("fq_codel", [(0x2c8c_5bd6_146d_8ace, [0, 2162, 2795]), (0x2564_1334_0e5f_6dd0, [3754, 1431, 3656])]),
        ("pie", [(0x1e13_ccf3_3276_5080, [0, 5608, 0]), (0x46ad_e033_f4a3_3cd4, [4737, 577, 0])]),
        ("red", [(0xfebe_948c_fa89_aac9, [0, 5043, 0]), (0x4236_13fc_3d51_0311, [5121, 184, 0])]),
        ("cake", [(0x1c3a_b11a_e37e_e966, [0, 1467, 2641]), (0xde9d_fc5c_7944_9b6c, [2120, 3256, 1040])]),
        ("dualpi2", [(0x5047_cc7c_ffa7_147e, [0, 5469, 2334]), (0x7306_9243_122c_6ae3, [2406, 3044, 2513])]),
    ];
    for (kind, wanted) in pinned {
        let queue = Queue::of_kind(kind).expect("a kind");
        let found = [queue.kind().limit, QueueLimit::Packets(60)].map(|limit| decisions(queue, limit));
        assert_eq!(found, wanted, "{kind}");
    }
}
