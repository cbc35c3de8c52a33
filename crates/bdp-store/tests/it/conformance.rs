//! What every store must do. A kind of store joins by a module with its own factory at the end.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::thread;

use bdp_model::measurement::labels::{Label, Labels};
use bdp_store::{DocumentKind, Error, NewRun, Page, RunInfo, RunKind, Store, StoredDocument};

use crate::samples::{attempt, measured, record, run};

/// An empty store of some kind that can be opened several times.
pub trait Factory: Sync {
    type Store: Store;
    /// Makes room for one empty store.
    fn new() -> Self;
    /// Opens it, each time with a connection of its own.
    fn open(&self) -> Self::Store;
}

/// Every run, newest first.
fn all(store: &dyn Store) -> Vec<RunInfo> {
    store.runs(&Page::default()).unwrap()
}

fn what_is_entered_is_read_back<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    let new = run("s1-window", "d1", 1_767_225_600_123);
    let id = store.begin_run(&new).unwrap();
    assert!(id.len() >= 4 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    let expected = RunInfo {
        id: id.clone(),
        kind: RunKind::Lab,
        label: None,
        labels: Labels::NONE,
        scenario: new.scenario,
        started_unix_ms: 1_767_225_600_123,
        finished_unix_ms: None,
        planned: 6,
        recorded: 0,
        valid: 0,
        plan_digest: "d1".into(),
        command: new.command,
        bdp: new.bdp,
    };
    assert_eq!(store.run(&id).unwrap(), expected);
    assert_eq!(all(&store), [expected]);
    assert_eq!(store.scenario_text(&id).unwrap(), new.scenario_text);

    store.finish_run(&id, 1_767_225_660_000).unwrap();
    assert_eq!(place.open().run(&id).unwrap().finished_unix_ms, Some(1_767_225_660_000));
}

fn labels_belong_to_their_run<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    let labels = |value: &str| -> Labels {
        [Label::new("site", value).unwrap(), Label::new("rack", "7").unwrap()].into_iter().collect()
    };
    let older = store.begin_run(&NewRun { labels: labels("ams"), ..run("a", "d", 1) }).unwrap();
    let newer = store.begin_run(&NewRun { labels: labels("ams"), ..run("a", "d", 2) }).unwrap();
    let other = store.begin_run(&NewRun { labels: labels("fra"), ..run("a", "d", 3) }).unwrap();
    store.begin_run(&run("a", "d", 4)).unwrap();
    assert_eq!(
        all(&store).iter().map(|run| run.labels.to_string()).collect::<Vec<_>>(),
        ["", "rack=7 site=fra", "rack=7 site=ams", "rack=7 site=ams"]
    );
    // They name the newest that has them, and are none of its documents.
    assert_eq!(store.run("site=ams").unwrap().id, newer);
    assert_eq!(store.run("site=fra").unwrap().id, other);
    assert!(matches!(store.run("site=lhr"), Err(Error::UnknownRun { .. })));
    assert!(store.documents(&newer).unwrap().is_empty());
    let mut lines = Vec::new();
    bdp_store::export(&store, &store.run(&older).unwrap(), "0.1.0", &mut lines).unwrap();
    let elsewhere = F::new();
    let mut carried = elsewhere.open();
    bdp_store::import(&mut carried, lines.as_slice()).unwrap();
    assert_eq!(carried.run(&older).unwrap().labels, labels("ams"));
    store.remove_run(&newer).unwrap();
    assert_eq!(place.open().run("site=ams").unwrap().id, older);
}

fn a_record_survives_to_the_last_bit<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    let mut given = record();
    given.goodput_bps = Some(0.1 + 0.2);
    given.expected_bps = Some(f64::MAX);
    given.fidelity.host_cpu_busy = f64::MIN_POSITIVE;
    given.fidelity.host_cpu_steal = 1.0 / 3.0;
    given.title = "quotes ' \" and \u{0} and \u{1F4E6}".into();
    store.append(&id, "window=64K #1", &given, true).unwrap();
    drop(store);
    assert_eq!(place.open().records(&id).unwrap(), [("window=64K #1".to_owned(), given)]);
}

fn records_keep_their_order_and_their_run<F: Factory>() {
    let mut store = F::new().open();
    let (a, b) = (store.begin_run(&run("a", "d", 1)).unwrap(), store.begin_run(&run("b", "d", 2)).unwrap());
    for (run, key, repetition, tried) in
        [(&a, "z #1", 1, 1), (&b, "z #1", 1, 1), (&a, "y #2", 2, 1), (&a, "z #1", 1, 2)]
    {
        store.append(run, key, &attempt(repetition, tried, true), true).unwrap();
    }
    let order: Vec<(String, u32)> =
        store.records(&a).unwrap().into_iter().map(|(key, r)| (key, r.attempt)).collect();
    assert_eq!(order, [("z #1".into(), 1), ("y #2".into(), 1), ("z #1".into(), 2)]);
    assert_eq!(store.records(&b).unwrap().len(), 1);
}

fn cases_are_counted_not_attempts<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    store.append(&id, "#1", &attempt(1, 1, false), false).unwrap();
    store.append(&id, "#1", &attempt(1, 2, true), true).unwrap();
    store.append(&id, "#2", &attempt(2, 1, false), false).unwrap();
    store.append(&id, "#2", &attempt(2, 2, false), true).unwrap();
    store.append(&id, "#3", &attempt(3, 1, false), false).unwrap();
    let info = store.run(&id).unwrap();
    assert_eq!((info.planned, info.recorded, info.valid), (6, 3, 1));
    // The third may still be tried again; the second used all its attempts.
    assert_eq!(store.settled_keys(&id).unwrap(), HashSet::from(["#1".to_owned(), "#2".to_owned()]));
}

fn runs_are_listed_newest_first<F: Factory>() {
    let mut store = F::new().open();
    let mut begin = |at| store.begin_run(&run("a", "d", at)).unwrap();
    let (second, first, third, same) = (begin(20), begin(10), begin(30), begin(30));
    let order: Vec<String> = all(&store).into_iter().map(|run| run.id).collect();
    assert_eq!(order, [same, third, second, first]);
}

fn runs_come_in_pages<F: Factory>() {
    let mut store = F::new().open();
    assert_eq!((store.count_runs().unwrap(), store.runs(&Page::first(3)).unwrap()), (0, vec![]));
    // Of some the start is the same.
    for at in [5, 1, 3, 3, 3, 9, 1] {
        let id = store.begin_run(&run("a", "d", at)).unwrap();
        store.append(&id, "#1", &record(), true).unwrap();
    }
    let whole = all(&store);
    assert_eq!((store.count_runs().unwrap(), whole.len()), (7, 7));
    for limit in [1, 2, 3, 7, 8] {
        let (mut page, mut gathered) = (Page::first(limit), Vec::new());
        loop {
            let runs = store.runs(&page).unwrap();
            let Some(last) = runs.last() else { break };
            assert!(runs.len() <= limit);
            page.after = Some(last.id.clone());
            gathered.extend(runs);
        }
        assert_eq!(gathered, whole, "pages of {limit}");
    }
    let rest = Page { after: Some(whole[4].id.clone()), limit: None };
    assert_eq!(store.runs(&rest).unwrap(), whole[5..]);
    let after_nothing = Page { after: Some("zzzz".into()), limit: None };
    assert!(matches!(store.runs(&after_nothing), Err(Error::UnknownRun { .. })));
}

fn a_reader_may_break_off<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    let mut later = measured("#3");
    later.measurement.schema = "bdp.measurement/2".into();
    for kept in [measured("#1"), measured("#2"), later] {
        store.append(&id, &kept.case_key, &record(), kept.case_key != "#2").unwrap();
        store.append_measurement(&id, &kept).unwrap();
    }
    let mut read = Vec::new();
    store
        .each_record(&id, &mut |kept| {
            read.push((kept.case_key, kept.settled));
            if read.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(read, [("#1".to_owned(), true), ("#2".to_owned(), false)]);
    // What can't be read is no hindrance before its turn.
    let mut keys = Vec::new();
    let refused = store.each_measurement(&id, &mut |kept| {
        keys.push(kept.case_key);
        ControlFlow::Continue(())
    });
    assert!(matches!(refused, Err(Error::NewerRecord { .. })));
    assert_eq!(keys, ["#1", "#2"]);
}

fn a_removed_run_takes_along_what_it_holds<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    let (gone, stays) =
        (store.begin_run(&run("a", "d", 1)).unwrap(), store.begin_run(&run("b", "d", 2)).unwrap());
    for id in [&gone, &stays] {
        store.append(id, "#1", &record(), true).unwrap();
        store.append_measurement(id, &measured("#1")).unwrap();
    }
    store.remove_run(&gone).unwrap();
    assert!(matches!(store.remove_run(&gone), Err(Error::UnknownRun { .. })));
    let again = place.open();
    assert_eq!(again.count_runs().unwrap(), 1);
    assert!(matches!(again.records(&gone), Err(Error::UnknownRun { .. })));
    assert_eq!((again.records(&stays).unwrap().len(), again.measurements(&stays).unwrap().len()), (1, 1));
    // A run that takes the number of the removed one inherits nothing.
    let next = store.begin_run(&NewRun { id: Some(gone.clone()), ..run("c", "d", 3) }).unwrap();
    assert_eq!(next, gone);
    assert_eq!((store.records(&next).unwrap().len(), store.measurements(&next).unwrap().len()), (0, 0));
}

fn what_belongs_together_is_kept_together<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    let work = |store: &mut dyn Store| {
        let id = store.begin_run(&run("a", "d", 1))?;
        store.append(&id, "#1", &record(), true)?;
        Ok(id)
    };
    store.atomically(&mut |store| work(store).map(|_| false)).unwrap();
    let mut id = String::new();
    let failed = store.atomically(&mut |store| {
        id = work(store)?;
        store.finish_run("zzzz", 1).map(|()| true)
    });
    assert!(matches!(failed, Err(Error::UnknownRun { .. })));
    assert_eq!(place.open().count_runs().unwrap(), 0);
    // And the store goes on.
    store.atomically(&mut |store| work(store).map(|_| true)).unwrap();
    assert_eq!(all(&place.open())[0].recorded, 1);
}

fn a_wanted_id_is_given_where_it_is_free<F: Factory>() {
    let mut store = F::new().open();
    let wanted = NewRun { id: Some("0123abcd".into()), ..run("a", "d", 1) };
    assert_eq!(store.begin_run(&wanted).unwrap(), "0123abcd");
    let other = store.begin_run(&wanted).unwrap();
    assert!(other != "0123abcd" && other.len() >= 4, "{other}");
}

fn exported_runs_are_imported_as_they_were<F: Factory>() {
    let (from, to) = (F::new(), F::new());
    let mut store = from.open();
    let lab = store.begin_run(&run("s1-window", "d1", 1)).unwrap();
    store.append(&lab, "#1", &attempt(1, 1, false), false).unwrap();
    store.append(&lab, "#1", &attempt(1, 2, true), true).unwrap();
    store.finish_run(&lab, 5).unwrap();
    let label = Some("before the change".to_owned());
    let between = store.begin_run(&NewRun { kind: RunKind::Measure, label, ..run("ams1", "", 2) }).unwrap();
    store.append_measurement(&between, &measured("#1")).unwrap();
    store.append_document(&between, &document(DocumentKind::Plan, 7)).unwrap();
    let mut text = Vec::new();
    for info in all(&store) {
        bdp_store::export(&store, &info, "0.1.0", &mut text).unwrap();
    }
    let import = |store: &mut F::Store, text: &[u8]| bdp_store::import(store, text);

    let mut other = to.open();
    let imported = import(&mut other, &text).unwrap();
    assert_eq!(imported.iter().map(|i| &i.id).collect::<Vec<_>>(), [&between, &lab]);
    assert!(imported.iter().all(|i| i.id == i.given && !i.was_there));
    assert_eq!(all(&other), all(&store));
    for id in [&lab, &between] {
        assert_eq!(other.records(id).unwrap(), store.records(id).unwrap());
        assert_eq!(other.measurements(id).unwrap(), store.measurements(id).unwrap());
        assert_eq!(other.documents(id).unwrap(), store.documents(id).unwrap());
        assert_eq!(other.scenario_text(id).unwrap(), store.scenario_text(id).unwrap());
        assert_eq!(other.settled_keys(id).unwrap(), store.settled_keys(id).unwrap());
    }
    // Once more adds nothing; where the name is another run's, the run gets one of its own.
    assert!(import(&mut other, &text).unwrap().iter().all(|i| i.was_there));
    assert_eq!(all(&other), all(&store));
    let mut third = F::new().open();
    third.begin_run(&NewRun { id: Some(lab.clone()), ..run("another", "d", 9) }).unwrap();
    let imported = import(&mut third, &text).unwrap();
    assert!(imported[1].given == lab && imported[1].id != lab && !imported[1].was_there);
    assert_eq!(third.records(&imported[1].id).unwrap(), store.records(&lab).unwrap());

    // Cut short or changed it is refused, and nothing of it is there.
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    let without_last = text.len() - lines[lines.len() - 1].len();
    let without_third: Vec<u8> = [&lines[..2], &lines[3..]].concat().concat();
    let newer = String::from_utf8(text.clone()).unwrap().replace("bdp.export/1", "bdp.export/2");
    let nobodys = String::from_utf8(text.clone()).unwrap().replace("\"kind\":\"lab\"", "\"kind\":\"web\"");
    for damaged in [
        &text[..without_last],
        &text[..text.len() / 2],
        &without_third,
        newer.as_bytes(),
        nobodys.as_bytes(),
        b"",
        b"{}",
    ] {
        let mut empty = F::new().open();
        let refused = import(&mut empty, damaged).unwrap_err();
        assert!(matches!(refused, Error::NotAnExport { .. }), "{refused}");
        assert_eq!(empty.count_runs().unwrap(), 0);
    }
}

fn a_prefix_names_a_run<F: Factory>() {
    let mut store = F::new().open();
    // With this many, two share their first digit.
    let ids: Vec<String> = (0..17).map(|at| store.begin_run(&run("a", "d", at)).unwrap()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    for id in &ids {
        assert_eq!(&store.run(id).unwrap().id, id);
        assert_eq!(&store.run(&id.to_uppercase()).unwrap().id, id);
    }
    let shared =
        ids.iter().map(|id| &id[..1]).find(|d| ids.iter().filter(|id| id.starts_with(d)).count() > 1);
    let shared = shared.expect("seventeen ids have sixteen first digits");
    match store.run(shared).unwrap_err() {
        Error::AmbiguousRun { given, candidates } => {
            assert_eq!(given, shared);
            assert!(candidates.len() > 1 && candidates.iter().all(|id| id.starts_with(shared)));
        }
        other => panic!("{other}"),
    }
    let mut single = F::new().open();
    let id = single.begin_run(&run("a", "d", 1)).unwrap();
    assert_eq!(single.run(&id[..1]).unwrap().id, id);
}

fn an_unknown_run_is_refused_with_those_there_are<F: Factory>() {
    let mut store = F::new().open();
    assert!(store.run("ab12").unwrap_err().to_string().contains("the store is empty"));
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    // None of these is a prefix of a hexadecimal id; '%' and '_' are wildcards of SQL.
    for wrong in ["zzzz", "", "%", "____", "'"] {
        let text = store.run(wrong).unwrap_err().to_string();
        assert!(text.contains(&format!("'{wrong}'")) && text.contains(&id), "{text}");
    }
    let unknown = |e: Error| assert!(matches!(e, Error::UnknownRun { .. }), "{e}");
    unknown(store.append("zzzz", "#1", &record(), true).unwrap_err());
    unknown(store.append_measurement("zzzz", &measured("#1")).unwrap_err());
    unknown(store.measurements("zzzz").unwrap_err());
    unknown(store.finish_run("zzzz", 1).unwrap_err());
    unknown(store.records("zzzz").unwrap_err());
    unknown(store.settled_keys("zzzz").unwrap_err());
    unknown(store.scenario_text("zzzz").unwrap_err());
}

fn the_newest_unfinished_run_of_a_plan_is_found<F: Factory>() {
    let mut store = F::new().open();
    assert_eq!(store.unfinished("a", "d1").unwrap(), None);
    let old = store.begin_run(&run("a", "d1", 1)).unwrap();
    let new = store.begin_run(&run("a", "d1", 2)).unwrap();
    let done = store.begin_run(&run("a", "d1", 3)).unwrap();
    store.begin_run(&run("a", "d2", 4)).unwrap();
    store.begin_run(&run("b", "d1", 5)).unwrap();
    store.finish_run(&done, 6).unwrap();
    assert_eq!(store.unfinished("a", "d1").unwrap().unwrap().id, new);
    store.finish_run(&new, 7).unwrap();
    assert_eq!(store.unfinished("a", "d1").unwrap().unwrap().id, old);
}

fn a_record_of_a_newer_schema_is_reported<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    let mut later = record();
    later.schema = "bdp.record/2".into();
    store.append(&id, "#1", &later, true).unwrap();
    let text = store.records(&id).unwrap_err().to_string();
    assert!(text.contains("bdp.record/2") && text.contains("'#1'") && text.contains("update bdp"), "{text}");
    // A minor number only adds fields.
    let id = store.begin_run(&run("a", "d", 2)).unwrap();
    later.schema = "bdp.record/1.7".into();
    store.append(&id, "#1", &later, true).unwrap();
    assert_eq!(store.records(&id).unwrap()[0].1, later);
}

fn a_record_that_json_cannot_hold_is_refused<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    for number in [f64::NAN, f64::INFINITY] {
        let mut broken = record();
        broken.goodput_bps = Some(number);
        assert!(matches!(store.append(&id, "#1", &broken, true), Err(Error::NotKept { .. })));
        let mut broken = record();
        broken.flows[0].sender_cpu = number;
        assert!(matches!(store.append(&id, "#1", &broken, true), Err(Error::NotKept { .. })));
    }
    assert_eq!(store.records(&id).unwrap(), []);
}

fn measurements_survive_in_their_order_and_run<F: Factory>() {
    let place = F::new();
    let mut store = place.open();
    for kind in [RunKind::Measure, RunKind::Sweep] {
        let label = Some(format!("nightly {}", kind.name()));
        let id = store.begin_run(&NewRun { kind, label: label.clone(), ..run("ams1", "", 1) }).unwrap();
        let mut given = ["#2", "#1", "#3"].map(measured);
        given[1].params.clear();
        given[2].measurement.error = Some("the far end vanished".into());
        for kept in &given {
            store.append_measurement(&id, kept).unwrap();
        }
        let again = place.open();
        assert_eq!(again.measurements(&id).unwrap(), given);
        assert_eq!(again.records(&id).unwrap(), []);
        let info = again.run(&id).unwrap();
        assert_eq!((info.kind, info.label), (kind, label));
        assert_eq!((info.recorded, info.valid), (3, 2), "one failed");
        assert_eq!(again.settled_keys(&id).unwrap(), HashSet::from(["#1", "#2", "#3"].map(str::to_owned)));
    }
}

fn document(kind: DocumentKind, at_unix_ms: u64) -> StoredDocument {
    let document = serde_json::json!({ "schema": format!("bdp.{}/1", kind.name()), "share": 0.1 });
    StoredDocument { kind, at_unix_ms, document }
}

fn documents_keep_their_order_and_end_with_their_run<F: Factory>() {
    let factory = F::new();
    let mut store = factory.open();
    let [id, other] = ["ams1", "ams2"].map(|host| store.begin_run(&run(host, "", 1)).unwrap());
    let given = DocumentKind::ALL.map(|kind| document(kind, 5));
    for kept in &given {
        store.append_document(&id, kept).unwrap();
    }
    store.append_document(&other, &document(DocumentKind::Plan, 9)).unwrap();
    drop(store);
    let mut store = factory.open();
    assert_eq!(store.documents(&id).unwrap(), given);
    store.remove_run(&id).unwrap();
    assert!(matches!(store.documents(&id), Err(Error::UnknownRun { .. })));
    assert!(matches!(store.append_document(&id, &given[0]), Err(Error::UnknownRun { .. })));
    assert_eq!(store.documents(&other).unwrap().len(), 1);
}

fn a_measurement_that_json_cannot_hold_is_refused<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    let mut broken = measured("#1");
    broken.measurement.directions[0].goodput_bps = f64::NAN;
    assert!(matches!(store.append_measurement(&id, &broken), Err(Error::NotKept { .. })));
    assert_eq!(store.measurements(&id).unwrap(), []);
}

fn a_measurement_of_a_newer_schema_is_reported<F: Factory>() {
    let mut store = F::new().open();
    let id = store.begin_run(&run("a", "d", 1)).unwrap();
    let mut later = measured("#1");
    later.measurement.schema = "bdp.measurement/2".into();
    store.append_measurement(&id, &later).unwrap();
    let text = store.measurements(&id).unwrap_err().to_string();
    assert!(text.contains("bdp.measurement/2") && text.contains("up to bdp.measurement/1"), "{text}");
}

fn a_label_names_a_run<F: Factory>() {
    let mut store = F::new().open();
    let mut labelled =
        |label: &str| store.begin_run(&NewRun { label: Some(label.into()), ..run("a", "d", 1) }).unwrap();
    let (main, _, thrice) = (labelled("Main"), labelled("tuned"), labelled("tuned"));
    assert_eq!(store.run("Main").unwrap().id, main);
    assert_eq!(store.run("tuned").unwrap().id, thrice, "the newest");
    // A label is not begun, and its case is its own.
    for wrong in ["Mai", "main"] {
        assert!(matches!(store.run(wrong), Err(Error::UnknownRun { .. })), "{wrong}");
    }
    // Another run's whole id is meant before a label.
    let vain = store.begin_run(&NewRun { label: Some(main.clone()), ..run("a", "d", 1) }).unwrap();
    assert_eq!(store.run(&main).unwrap().id, main);
    assert_eq!(store.run(&vain).unwrap().label, Some(main));
}

fn two_writers_share_a_store<F: Factory>() {
    const RECORDS: u32 = 40;
    let place = F::new();
    let common = place.open().begin_run(&run("common", "d", 1)).unwrap();
    let own: Vec<String> = thread::scope(|scope| {
        let write = |name: &'static str| {
            let (place, common) = (&place, &common);
            scope.spawn(move || {
                let mut store = place.open();
                let own = store.begin_run(&run(name, "d", 2)).unwrap();
                for i in 1..=RECORDS {
                    let record = attempt(i, 1, true);
                    store.append(&own, &format!("{name} #{i}"), &record, true).unwrap();
                    store.append(common, &format!("{name} #{i}"), &record, true).unwrap();
                    assert_eq!(store.run(&own).unwrap().recorded, i);
                }
                own
            })
        };
        [write("a"), write("b")].map(|writer| writer.join().unwrap()).into()
    });
    let store = place.open();
    assert_eq!(store.run(&common).unwrap().recorded, 2 * RECORDS);
    for (id, name) in own.iter().zip(["a", "b"]) {
        let keys: Vec<String> = store.records(id).unwrap().into_iter().map(|(key, _)| key).collect();
        let expected: Vec<String> = (1..=RECORDS).map(|i| format!("{name} #{i}")).collect();
        assert_eq!(keys, expected);
    }
}

fn several_may_make_the_same_store<F: Factory>() {
    for _ in 0..10 {
        let place = F::new();
        let begun: HashSet<String> = thread::scope(|scope| {
            let begin = |at| {
                let place = &place;
                scope.spawn(move || place.open().begin_run(&run("a", "d", at)).unwrap())
            };
            [begin(1), begin(2), begin(3), begin(4)].map(|b| b.join().unwrap()).into()
        });
        let kept: HashSet<String> = all(&place.open()).into_iter().map(|run| run.id).collect();
        assert_eq!((kept.len(), &kept), (4, &begun));
    }
}

/// One test for every rule, for one kind of store.
macro_rules! conform {
    ($factory:ty: $($rule:ident)*) => {
        $(#[test]
        fn $rule() {
            super::$rule::<$factory>();
        })*
    };
}

mod sqlite {
    use bdp_store::SqliteStore;
    use tempfile::TempDir;

    /// A store in a folder of its own.
    struct InFolder(TempDir);

    impl super::Factory for InFolder {
        type Store = SqliteStore;
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }
        fn open(&self) -> SqliteStore {
            SqliteStore::open(self.0.path().join("bdp.sqlite")).unwrap()
        }
    }

    conform! { InFolder:
        what_is_entered_is_read_back
        labels_belong_to_their_run
        a_record_survives_to_the_last_bit
        records_keep_their_order_and_their_run
        cases_are_counted_not_attempts
        runs_are_listed_newest_first
        runs_come_in_pages
        a_reader_may_break_off
        a_removed_run_takes_along_what_it_holds
        what_belongs_together_is_kept_together
        a_wanted_id_is_given_where_it_is_free
        exported_runs_are_imported_as_they_were
        a_prefix_names_a_run
        an_unknown_run_is_refused_with_those_there_are
        the_newest_unfinished_run_of_a_plan_is_found
        a_record_of_a_newer_schema_is_reported
        a_record_that_json_cannot_hold_is_refused
        measurements_survive_in_their_order_and_run
        documents_keep_their_order_and_end_with_their_run
        a_measurement_that_json_cannot_hold_is_refused
        a_measurement_of_a_newer_schema_is_reported
        a_label_names_a_run
        two_writers_share_a_store
        several_may_make_the_same_store
    }
}
