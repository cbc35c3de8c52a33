//! Imports `tc` commands and the output of `tc qdisc show` and `tc class show`: each device becomes a direction with its nested
//! disciplines, from the root to the last.

use super::discipline::{self, Discipline, Node};
use super::draft::{Draft, ImportError, Imported};
use super::shell;
use super::words::shown;

type Result<T> = std::result::Result<T, ImportError>;

/// The disciplines of a device.
#[derive(Debug, Default)]
struct Device {
    name: String,
    disciplines: Vec<Node>,
    classes: Vec<Node>,
    filters: usize,
    /// Rate and burst of the policer at its ingress, as written.
    police: Option<Vec<String>>,
    is_ingress: bool,
    /// The device to which its ingress is redirected.
    passed_on: Option<String>,
}

/// Whether this is text of `tc`: a command or its output.
pub(super) fn is_tc(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace().filter(|word| *word != "sudo").peekable();
        let is_shown = words.peek().is_some_and(|word| ["qdisc", "class"].contains(word));
        is_shown || line.split_whitespace().any(|word| word == "tc" || word.ends_with("/tc"))
    })
}

/// Imports the directions of all devices in commands or output: the first one is the forward direction, the second one the reverse.
pub fn import(text: &str) -> Result<Imported> {
    let mut devices: Vec<Device> = Vec::new();
    let mut left_out = Vec::new();
    for words in shell::commands(text)? {
        if shell::is_control_flow(&words) {
            let text = "shell loops and conditions are not supported; give the resulting commands";
            return Err(ImportError::new(format!("'{}': {text}", shown(&words.join(" ")))));
        }
        match command(&words) {
            Some(words) => read(words, &mut devices, &mut left_out)?,
            None if is_listed_counter(&words) => {}
            None => left_out.push(format!("'{}': not a tc command", shown(&words.join(" ")))),
        }
    }
    directions(devices, left_out)
}

/// Returns the words after `tc` and its own options; a line of output unchanged.
fn command(words: &[String]) -> Option<&[String]> {
    let listed = words.first().is_some_and(|word| ["qdisc", "class"].contains(&word.as_str()));
    let place = words.iter().position(|word| word == "tc" || word.ends_with("/tc"));
    let mut rest = match place {
        Some(place) => &words[place + 1..],
        None if listed => return Some(words),
        None => return None,
    };
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let has_value = ["-n", "-netns", "-cf", "-conf"].contains(&option.as_str());
        rest = rest.get(1 + usize::from(has_value)..)?;
    }
    Some(rest)
}

/// Whether this is a line of counters in the output of `tc -s qdisc show`.
fn is_listed_counter(words: &[String]) -> bool {
    const COUNTERS: [&str; 13] = [
        "Sent",
        "backlog",
        "rate",
        "lended:",
        "tokens:",
        "maxpacket",
        "new_flows_len",
        "memory",
        "capacity",
        "min/max",
        "average",
        "direct_packets_stat",
        "new_flow_count",
    ];
    words.first().is_some_and(|first| COUNTERS.contains(&first.as_str()))
}

fn read(words: &[String], devices: &mut Vec<Device>, left_out: &mut Vec<String>) -> Result<()> {
    let all = words.join(" ");
    let refuse = |why: &str| Err(ImportError::new(format!("'{}': {why}", shown(&all))));
    let [object, rest @ ..] = words else { return refuse("tc without a command") };
    // tc accepts unambiguous abbreviations.
    let is = |word: &str, least: usize| word.starts_with(object.as_str()) && object.len() >= least;
    let object = match () {
        () if is("qdisc", 1) => "qdisc",
        () if is("class", 1) => "class",
        () if is("filter", 1) => "filter",
        () => {
            left_out.push(format!("'{}': not a qdisc, class or filter", shown(&all)));
            return Ok(());
        }
    };
    match rest.first().map(String::as_str) {
        Some("add" | "a" | "replace" | "change" | "chg" | "r" | "link") => {}
        Some("del" | "delete" | "d") => return delete(&rest[1..], object, devices),
        Some("show" | "list" | "ls" | "s" | "l") | None => return Ok(()),
        Some(_) if object == "qdisc" || object == "class" => return listed(object, rest, devices),
        Some(_) => return refuse("supported: add, change, replace and del"),
    }
    let verb = rest[0].as_str();
    let mut node =
        Node { id: String::new(), parent: String::new(), kind: String::new(), options: Vec::new() };
    let mut device = None;
    let mut words = rest[1..].iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().unwrap_or_default();
        match word.as_str() {
            "dev" => device = Some(value()),
            "root" => node.parent = "root".to_owned(),
            "parent" => node.parent = value(),
            "handle" if object != "filter" => node.id = value(),
            "classid" => node.id = value(),
            "ingress" | "clsact" if node.kind.is_empty() => {
                (node.kind, node.parent) = (word.clone(), "ingress".to_owned());
            }
            "estimator" => {
                value();
                value();
            }
            _ => {
                node.kind = word.clone();
                node.options = words.cloned().collect();
                break;
            }
        }
    }
    let Some(name) = device else { return refuse("no device given: dev eth0") };
    if node.kind.is_empty() {
        return refuse("no qdisc given");
    }
    if object == "filter" {
        let device = device_of(devices, &name);
        return filter(device, &node, rest, left_out);
    }
    if node.parent.is_empty() && object == "qdisc" && node.kind != "ingress" {
        // At the place where it was added.
        let known = device_of(devices, &name).disciplines.iter().find(|known| known.id == node.id);
        match known {
            Some(known) if !node.id.is_empty() => node.parent = known.parent.clone(),
            _ => return refuse("neither root nor a parent given"),
        }
    }
    put(devices, &name, object, verb, node);
    Ok(())
}

/// Returns the last device of this name, or a new one.
fn device_of<'a>(devices: &'a mut Vec<Device>, name: &str) -> &'a mut Device {
    let place = devices.iter().rposition(|device| device.name == name).unwrap_or_else(|| {
        devices.push(Device { name: name.to_owned(), ..Device::default() });
        devices.len() - 1
    });
    &mut devices[place]
}

fn put(devices: &mut Vec<Device>, name: &str, object: &str, verb: &str, node: Node) {
    let device = device_of(devices, name);
    if node.parent == "ingress" {
        device.is_ingress = true;
        return;
    }
    if object == "class" {
        match device.classes.iter_mut().find(|known| known.id == node.id && !node.id.is_empty()) {
            Some(known) => *known = node,
            None => device.classes.push(node),
        }
        return;
    }
    let known = device.disciplines.iter().position(|known| known.parent == node.parent);
    match known {
        // A second one at the root belongs to the other host's device.
        Some(_) if verb == "add" && node.parent == "root" => {
            devices.push(Device { name: name.to_owned(), disciplines: vec![node], ..Device::default() });
        }
        Some(place) => {
            let known = &mut device.disciplines[place];
            let changed = (known.kind == node.kind).then(|| discipline::changed(known, &node));
            let id = if node.id.is_empty() { known.id.clone() } else { node.id.clone() };
            *known = Node { id, ..changed.unwrap_or(node) };
        }
        None => device.disciplines.push(node),
    }
}

fn delete(rest: &[String], object: &str, devices: &mut [Device]) -> Result<()> {
    let after = |word: &str| {
        let place = rest.iter().position(|known| known == word)?;
        rest.get(place + 1)
    };
    let Some(name) = after("dev") else {
        return Err(ImportError::new(format!("'tc {object} del' without a device: dev eth0")));
    };
    let is_root = rest.iter().any(|word| word == "root");
    let parent = after("parent").cloned();
    let id = after("classid").or_else(|| after("handle")).cloned();
    for device in devices.iter_mut().filter(|device| device.name == *name) {
        match object {
            "qdisc" if is_root => {
                device.disciplines.clear();
                device.classes.clear();
            }
            "qdisc" => device.disciplines.retain(|node| {
                Some(&node.parent) != parent.as_ref() && (id.is_none() || Some(&node.id) != id.as_ref())
            }),
            "class" => device.classes.retain(|node| Some(&node.id) != id.as_ref()),
            _ => device.filters = 0,
        }
        if rest.iter().any(|word| word == "ingress") {
            (device.is_ingress, device.police, device.passed_on) = (false, None, None);
        }
    }
    Ok(())
}

/// Reads a line of `tc qdisc show` or `tc class show`: `netem 8001: dev eth0 root refcnt 2 limit 1000 delay 50ms`.
fn listed(object: &str, rest: &[String], devices: &mut Vec<Device>) -> Result<()> {
    let [kind, id, more @ ..] = rest else { return Ok(()) };
    let mut node = Node { id: id.clone(), parent: String::new(), kind: kind.clone(), options: Vec::new() };
    let mut name = None;
    let mut words = more.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "dev" => name = words.next().cloned(),
            "root" => node.parent = "root".to_owned(),
            "parent" => node.parent = words.next().cloned().unwrap_or_default(),
            "refcnt" | "leaf" => {
                words.next();
            }
            "offloaded" | "deleted" => {}
            _ => node.options.push(word.clone()),
        }
    }
    if kind == "ingress" || kind == "clsact" {
        node.parent = "ingress".to_owned();
    }
    if node.parent.is_empty() {
        let what = shown(&format!("{object} {}", rest.join(" ")));
        return Err(ImportError::new(format!("'{what}': neither root nor a parent given")));
    }
    // 'tc class show dev eth0' names no device: it is the previous one.
    let name = name.or_else(|| devices.last().map(|device| device.name.clone())).unwrap_or_default();
    let verb = if object == "qdisc" && node.parent == "root" { "add" } else { "replace" };
    put(devices, &name, object, verb, node);
    Ok(())
}

fn filter(device: &mut Device, node: &Node, rest: &[String], left_out: &mut Vec<String>) -> Result<()> {
    let is_ingress = node.parent.starts_with("ffff") || rest.iter().any(|word| word == "ingress");
    let after = |words: &[&str]| {
        let place = rest.windows(words.len()).position(|window| window == words)?;
        rest.get(place + words.len()..)
    };
    if let Some(police) = after(&["police"]) {
        if !is_ingress {
            let what = shown(&rest.join(" "));
            return Err(ImportError::new(format!(
                "'{what}': an egress policer; only ingress policers are supported"
            )));
        }
        device.police = Some(police.to_vec());
        return Ok(());
    }
    let redirected = after(&["redirect", "dev"]).and_then(|rest| rest.first());
    match redirected {
        Some(to) if is_ingress => device.passed_on = Some(to.clone()),
        _ => {
            if device.filters == 0 {
                left_out
                    .push(format!("{}: filters; all packets of a direction are treated alike", device.name));
            }
            device.filters += 1;
        }
    }
    Ok(())
}

fn directions(devices: Vec<Device>, mut left_out: Vec<String>) -> Result<Imported> {
    let mut draft = Draft::default();
    let mut way = 0;
    let mut ingress = None;
    for device in &devices {
        if let Some(police) = &device.police {
            ingress = Some((device.name.clone(), discipline::policer(police)?));
        }
    }
    // Packets redirected from a device's ingress come from the other side.
    let passed_on: Vec<&String> = devices.iter().filter_map(|device| device.passed_on.as_ref()).collect();
    let (back, there): (Vec<&Device>, Vec<&Device>) =
        devices.iter().partition(|device| passed_on.contains(&&device.name));
    let has_egress = there.iter().any(|device| !device.disciplines.is_empty());
    for (index, device) in there.into_iter().chain(back.iter().copied()).enumerate() {
        let is_back = index + back.len() >= devices.len();
        let mut lines = Vec::new();
        let Some(chain) = chain(device, &mut lines)? else { continue };
        if is_back && way == 0 && has_egress {
            way = 1;
        }
        let keys = discipline::keys(&chain, &mut lines)?;
        let whose = match (keys.is_some(), way) {
            (true, 0) => "forward",
            (true, _) => "reverse",
            (false, _) => device.name.as_str(),
        };
        left_out.extend(lines.into_iter().map(|line| format!("{whose}: {line}")));
        let Some(keys) = keys else { continue };
        let Some(place) = draft.directions.get_mut(way) else {
            return Err(ImportError::new(
                "more than two devices or root qdiscs; give one or two, one per direction",
            ));
        };
        *place = keys;
        way += 1;
    }
    if let Some((name, (rate, burst))) = ingress {
        if way > 1 {
            return Err(ImportError::new(format!(
                "{name}: a policer of what arrives, beside two directions; one of them is read with it"
            )));
        }
        draft.directions[1].set("policer", format!("{{ rate = {rate}, burst = {burst} }}"));
        way = 2;
    }
    if way == 0 {
        let why = "no delay, loss, rate or queue on any device";
        return Err(ImportError::new(match left_out.first() {
            Some(first) => format!("{why} ({first})"),
            None => why.to_owned(),
        }));
    }
    draft.left_out = left_out;
    Ok(draft.finish("Imported from tc"))
}

/// Returns the disciplines of a device from its root to the last, with the htb classes between; `None` if it has none.
fn chain(device: &Device, left_out: &mut Vec<String>) -> Result<Option<Vec<Discipline>>> {
    let Some(root) = device.disciplines.iter().find(|node| node.parent == "root") else {
        return match device.disciplines.first().or(device.classes.first()) {
            Some(node) => Err(ImportError::new(format!(
                "{}: {} is below '{}', but the root is not given",
                device.name,
                node.kind,
                shown(&node.parent)
            ))),
            None => Ok(None),
        };
    };
    let mut all = Vec::new();
    let mut node = root;
    loop {
        if all.len() > 8 {
            return Err(ImportError::new(format!("{}: its qdiscs form a loop", device.name)));
        }
        let major = major(&node.id);
        let children: Vec<&Node> = device
            .disciplines
            .iter()
            .filter(|child| {
                !std::ptr::eq(*child, node) && child.parent != "root" && self::major(&child.parent) == major
            })
            .collect();
        let mut classes: Vec<&Node> = Vec::new();
        let next = match node.kind.as_str() {
            "htb" => {
                classes = htb_classes(device, node, &children, left_out)?;
                children
                    .iter()
                    .find(|child| classes.first().is_some_and(|leaf| leaf.id == child.parent))
                    .copied()
            }
            _ => match children.as_slice() {
                [] => None,
                [only] => Some(*only),
                several => {
                    let telling: Vec<&&Node> =
                        several.iter().filter(|child| discipline::acts(child)).collect();
                    match telling.as_slice() {
                        [one] => {
                            left_out.push(format!(
                                "{}: bands of {} but that with {}",
                                device.name, node.kind, one.kind
                            ));
                            Some(**one)
                        }
                        _ => {
                            return Err(ImportError::new(format!(
                                "{}: {} has {} qdiscs below it; a direction can have one",
                                device.name,
                                node.kind,
                                several.len()
                            )));
                        }
                    }
                }
            },
        };
        all.push(Discipline::read(node, &classes, next.is_some(), left_out)?);
        let Some(next) = next else { return Ok(Some(all)) };
        node = next;
    }
}

/// Returns the class of all packets and those above it: the only one, the one whose discipline has an effect, or the default.
fn htb_classes<'a>(
    device: &'a Device,
    htb: &Node,
    children: &[&Node],
    left_out: &mut Vec<String>,
) -> Result<Vec<&'a Node>> {
    let own: Vec<&Node> = device.classes.iter().filter(|class| major(&class.id) == major(&htb.id)).collect();
    let leaves: Vec<&Node> =
        own.iter().filter(|class| !own.iter().any(|other| other.parent == class.id)).copied().collect();
    let after_default = htb.options.iter().skip_while(|word| *word != "default").nth(1);
    let default = after_default.map(|word| word.trim_start_matches("0x").trim_start_matches('0').to_owned());
    let minor =
        |class: &Node| class.id.split_once(':').map(|(_, minor)| minor.trim_start_matches('0').to_owned());
    let acting: Vec<&Node> = leaves
        .iter()
        .filter(|leaf| children.iter().any(|child| child.parent == leaf.id && discipline::acts(child)))
        .copied()
        .collect();
    let by_default = || leaves.iter().find(|leaf| default.is_some() && minor(leaf) == default).copied();
    let leaf = match (leaves.as_slice(), acting.as_slice()) {
        ([], _) => {
            left_out.push("htb without a class, which has no effect".to_owned());
            return Ok(Vec::new());
        }
        ([only], _) => *only,
        (_, [only]) => *only,
        (several, acting) => match by_default().filter(|_| acting.is_empty()) {
            Some(leaf) => leaf,
            None => {
                let names: Vec<&str> = several.iter().map(|class| class.id.as_str()).collect();
                return Err(ImportError::new(format!(
                    "{}: htb has several classes ({}); give only the commands of one class",
                    device.name,
                    names.join(", ")
                )));
            }
        },
    };
    if leaves.len() > 1 {
        left_out.push(format!(
            "{}: htb classes other than {}; all packets of a direction are treated alike",
            device.name, leaf.id
        ));
    }
    let mut path = vec![leaf];
    while let Some(parent) = own.iter().find(|class| path.last().is_some_and(|last| last.parent == class.id))
    {
        if path.iter().any(|known| std::ptr::eq(*known, *parent)) {
            return Err(ImportError::new(format!("{}: htb classes form a loop at {}", device.name, leaf.id)));
        }
        path.push(parent);
    }
    Ok(path)
}

fn major(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}
