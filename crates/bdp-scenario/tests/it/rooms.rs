//! The room on a route, and its losses, as each impairment of a scenario's link leaves them.

use bdp_model::case::route::Route;
use bdp_model::path::loss::SegmentLoss;

use super::*;

fn case(text: &str) -> CaseSpec {
    Scenario::parse("t.toml", text).unwrap().plan(&Default::default()).unwrap().remove(0)
}

/// Capacity for full segments of 1448 bytes on the route of the first flow of a scenario with this link.
fn rooms(link: &str) -> Vec<(String, f64, &'static str)> {
    let text = format!("title = 't'\n[link]\nbetween = ['near', 'far']\n{link}\n[flow]\n");
    let case = case(&text);
    let route = Route::of(&case, &case.flows[0]).unwrap();
    route.rooms(1448, 52).map(|(hop, bps, by)| (route.name(hop), (bps / 1e3).round() / 1e3, by)).collect()
}

#[test]
fn each_impairment_that_takes_room_is_considered() {
    let near = "near->far".to_owned();
    assert_eq!(rooms(""), []);
    assert_eq!(rooms("rate = '20M'"), [(near.clone(), 18.83, "ceiling")]);
    assert_eq!(
        rooms("rate = '20M'\nforward.policer = { rate = '5M', burst = '32K' }"),
        [(near.clone(), 18.83, "ceiling"), (near.clone(), 4.827, "policer")]
    );
    assert_eq!(rooms("rate = '20M'\nduplicate = '2%'"), [(near.clone(), 18.46, "ceiling with its copies")]);
    // 4 segments of 615.2 us, 2 acknowledgements of 36 us, 2 guards of 500 us: 2460.8 / 3532.8.
    assert_eq!(
        rooms("rate = '20M'\nhalf_duplex = { guard = '500us', turn = '2ms' }"),
        [(near, 13.116, "half-duplex ceiling")]
    );
}

#[test]
fn what_is_corrupted_is_lost_too() {
    let text = "title = 't'\n[link]\nbetween = ['a', 'b']\nloss = '10%'\ncorrupt = '10%'\n[flow]\n";
    let case = case(text);
    let loss = Route::of(&case, &case.flows[0]).unwrap().segment_loss();
    let SegmentLoss::Independent(p) = loss else { panic!("{loss:?}") };
    assert!((p - 0.19).abs() < 1e-12, "{p}");
}
