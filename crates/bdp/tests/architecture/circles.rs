//! Which files of a crate need each other in a circle, so that none of them can be read, tested or moved alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{Token, paths, tokens};

/// A module's path from the root of its crate; each has a file.
pub type Module = Vec<String>;

/// Groups of files that need each other, of the files of one crate by their modules.
pub fn circles(files: &BTreeMap<Module, String>) -> Vec<BTreeSet<Module>> {
    let sources: BTreeMap<&Module, Source> = files.iter().map(|(m, text)| (m, Source::of(text))).collect();
    let needs: BTreeMap<&Module, BTreeSet<Module>> = sources
        .iter()
        .map(|(&module, source)| {
            let named = source.uses.iter().filter_map(|path| target(&sources, module, path, 0));
            (module, named.filter(|named| named != module).collect())
        })
        .collect();
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        needs.keys().map(|&module| (module, reach(&needs, module))).collect();
    let mut circles: Vec<BTreeSet<Module>> = Vec::new();
    for (&module, from_here) in reached.iter().filter(|(module, from_here)| from_here.contains(**module)) {
        if !circles.iter().any(|circle| circle.contains(module)) {
            let back = |other: &&Module| reached[*other].contains(module);
            circles.push(from_here.iter().filter(back).cloned().collect());
        }
    }
    circles
}

/// What a file names, outside its tests.
struct Source {
    uses: Vec<Vec<String>>,
    /// By name, what it gives on: who takes that takes it from where it is.
    gives_on: BTreeMap<String, Vec<String>>,
}

impl Source {
    fn of(text: &str) -> Self {
        let all = tokens(text);
        let code = without_tests(&all);
        let (mut own, mut given) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < code.len() {
            let end = statement_of_public_use(&code[at..]);
            match end {
                Some(length) => given.extend_from_slice(&code[at..at + length]),
                None => own.push(code[at]),
            }
            at += end.unwrap_or(1);
        }
        let owned = |tokens: &[Token<'_>]| -> Vec<Vec<String>> {
            paths(tokens)
                .into_iter()
                .map(|(_, path)| path.iter().map(|s| (*s).to_owned()).collect())
                .collect()
        };
        let gives_on = owned(&given).into_iter().filter_map(|path| Some((path.last()?.clone(), path)));
        Self { uses: owned(&own), gives_on: gives_on.collect() }
    }
}

/// How many tokens a `pub use ...;` has that stands here.
fn statement_of_public_use(code: &[Token<'_>]) -> Option<usize> {
    let text = |at: usize| code.get(at).map(|token| token.text);
    let after = match (text(0)?, text(1)?) {
        ("pub", "(") => code.iter().position(|token| token.text == ")")? + 1,
        ("pub", _) => 1,
        _ => return None,
    };
    let is_use = text(after) == Some("use");
    is_use.then(|| code.iter().position(|token| token.text == ";").map_or(code.len(), |at| at + 1))
}

/// Code without what is compiled for tests alone.
fn without_tests<'a>(all: &[Token<'a>]) -> Vec<Token<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if !all[at..].iter().map(|token| token.text).take(MARK.len()).eq(MARK) {
            kept.push(all[at]);
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0;
        while let Some(token) = all.get(at) {
            at += 1;
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(token.text, "}" | ";") {
                break;
            }
        }
    }
    kept
}

/// The module whose file holds what a path names; `None` where that is another crate's, or nothing that has a file.
fn target(
    sources: &BTreeMap<&Module, Source>,
    from: &Module,
    path: &[String],
    depth: usize,
) -> Option<Module> {
    let (mut module, mut rest) = (from.clone(), path);
    match path.first()?.as_str() {
        "crate" => (module, rest) = (Module::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|segment| segment == "super") {
                module.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let child = [from.as_slice(), &[first.to_owned()]].concat();
            if !sources.contains_key(&child) && !sources[from].gives_on.contains_key(first) {
                return None;
            }
        }
    }
    while let Some(segment) = rest.first() {
        let child = [module.as_slice(), std::slice::from_ref(segment)].concat();
        if !sources.contains_key(&child) {
            break;
        }
        (module, rest) = (child, &rest[1..]);
    }
    let given = rest.first().and_then(|name| sources.get(&module)?.gives_on.get(name));
    match given {
        // A name that is given on to itself comes from nowhere.
        Some(given) if depth < 8 => {
            target(sources, &module, &[given.as_slice(), &rest[1..]].concat(), depth + 1)
        }
        _ => sources.contains_key(&module).then_some(module),
    }
}

fn reach(needs: &BTreeMap<&Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = left.pop() {
        for next in needs.get(&module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let module = |path: &str| path.split('/').filter(|s| !s.is_empty()).map(str::to_owned).collect();
        let files = files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect();
        let circles = circles(&files);
        circles.iter().map(|circle| circle.iter().map(|m: &Module| m.join("/")).collect()).collect()
    }

    #[test]
    fn files_that_need_each_other_are_a_circle() {
        let circle = [("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "fn f() -> super::a::A {}")];
        assert_eq!(found(&circle), [["a", "b"]]);
        assert_eq!(found(&[("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "")]).len(), 0);
    }

    #[test]
    fn a_parent_that_declares_a_child_does_not_need_it() {
        let child = ("a", "use super::Thing;");
        assert_eq!(found(&[("", "mod a; struct Thing;"), child]).len(), 0);
        assert_eq!(found(&[("", "mod a; struct Thing; use a::Other;"), child]), [["", "a"]]);
        assert_eq!(found(&[("", "mod a; struct Thing; fn f() { a::run() }"), child]), [["", "a"]]);
    }

    #[test]
    fn what_is_given_on_is_taken_from_where_it_is() {
        let files = [("", "mod a; mod b; pub use a::A;"), ("a", ""), ("b", "use crate::A;")];
        assert_eq!(found(&files).len(), 0);
        assert_eq!(found(&[files[0], ("a", "use crate::b::B;"), files[2]]), [["a", "b"]]);
    }

    #[test]
    fn tests_may_need_whatever_they_try() {
        let a = ("a", "fn f() {} #[cfg(test)] mod tests { use crate::b::B; fn g() { if x { y } } }");
        assert_eq!(found(&[("", "mod a; mod b;"), a, ("b", "use crate::a::f;")]).len(), 0);
    }
}
