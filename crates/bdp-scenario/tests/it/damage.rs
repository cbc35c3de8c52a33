//! Files that are not scenarios, and scenarios that were damaged: read or refused, never a panic.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn text_of_any_kind_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Scenario::parse("s", &text);
    }

    /// Shipped files with a few bytes replaced, removed or doubled reach deeper than noise does.
    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0usize..shipped().count(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, "[-0-9a-zA-Z.\\[\\]{}=\"', \n]"), 1..6),
    ) {
        let (name, text) = shipped().nth(which).unwrap();
        let mut chars: Vec<char> = text.chars().collect();
        for (index, kind, with) in &edits {
            let i = index.index(chars.len());
            let c = with.chars().next().unwrap_or('x');
            match kind {
                0 => chars[i] = c,
                1 => { chars.remove(i); }
                _ => chars.insert(i, c),
            }
        }
        let text: String = chars.into_iter().collect();
        if let Err(e) = Scenario::parse(name, &text) {
            let shown = e.to_string();
            let prefix = format!("{name}.toml:");
            prop_assert!(shown.starts_with(&prefix), "{}", shown);
            let lines = text.lines().count() + 1;
            prop_assert!(e.line.is_none_or(|l| (1..=lines).contains(&l)), "{}", shown);
        }
    }

    /// Values of every type in every place: refused with a message, or planned.
    #[test]
    fn any_value_in_any_place_is_planned_or_refused(
        path in prop::sample::select(vec![
            "flow.window", "flow.mss", "flow.omit", "flow.direction", "flow.0.to", "link.loss", "link.limit", "link.mtu",
            "link.forward", "link.between", "hosts.far.sysctls", "hosts.far.sysctls.net.x", "idle", "family", "flow[", "..", "hosts",
            "link.jitter", "link.jitter.table", "link.reorder", "link.reorder.by", "link.policer", "link.policer.burst",
            "link.duplicate", "link.corrupt", "link.drop_above", "link.ecn_threshold", "link.half_duplex", "link.half_duplex.guard",
            "link.loss.to_bad", "link.loss.packets", "link.delivery", "link.queue", "link.queue.kind", "link.queue.target", "link.queue.flows",
            "probe", "flow.start", "hosts.far.router", "hosts.far.routes",
        ]),
        value in prop::sample::select(vec![
            "0", "-1", "9223372036854775807", "1e308", "nan", "inf", "true", "[]", "[[1]]", "{}", "{ every = 0 }", "{ packets = [2, 1] }", "{ to_bad = 1, to_good = nan }", "{ table = [-1] }", "{ rate = 1, burst = -1 }", "1979-05-27", "\"\"", "auto",
            "none", "tcp-connect", "[{ to = \"near\", via = \"near\" }]", "9e99s", "1e-400", "{ from = 1 }", "codel", "{ kind = 'fq_codel', flows = 0 }", "{ kind = 1 }", "999999999999p", "-5K",
        ]),
    ) {
        let scenario = Scenario::parse("s", BASE).unwrap();
        let _ = scenario.plan(&set(path, value));
        let _ = Scenario::parse("s", &format!("{BASE}[sweep]\n'{path}' = [{value}]\n"));
        let _ = Scenario::parse("s", &format!("{BASE}[[expect]]\nwhen = {{ '{path}' = {value} }}\n"));
        let _ = Scenario::parse("s", &format!("{BASE}[sweep]\n'{path}' = {{ from = {value}, to = {value}, steps = 3 }}\n"));
        let _ = Scenario::parse("s", &format!("{BASE}[sweep]\n'{path}' = {{ from = 0, to = {value}, step = {value} }}\n"));
    }
}
