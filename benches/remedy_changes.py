"""What `bdp` advises, carried out in a scenario of the lab: for each action of a remedy the changes that its words name, and what they are to bring."""
import copy

# What the words of a remedy promise.
GOODPUT, QUEUE, LOSS = "more goodput", "a shorter queue", "less loss"
# A setting that is to be raised, by nobody knows how much.
LARGER = 4


def carried_out(scenario, remedy, path):
    """Each way of a remedy as (name, what is promised, scenario); none of what the lab has no key for."""
    action, setting, value, host = (remedy.get(name) for name in ("action", "setting", "value", "host"))
    full = max(4, round(path.rate * path.rtt / 8 / 1500))

    def changed(change):
        new = copy.deepcopy(scenario)
        change(new, new["link"][0], new["flow"][0])
        return new

    def without(*names):
        """The link without these faults, each way, and at its first rate and delay."""
        def change(new, link, flow):
            for name in names:
                for part in (link, link.get("forward", {}), link.get("reverse", {})):
                    part.pop(name, None)
        return changed(change)

    def by_rate():
        return (f"{action}: bbr", GOODPUT, changed(lambda new, link, flow: flow.update(congestion="bbr")))

    def queue():
        packets = max(4, round(value / 1448)) if value else full
        return (f"{action}: queue", GOODPUT, changed(lambda new, link, flow: link.update(limit=packets)))

    def sized(key):
        def change(new, link, flow):
            now = new["hosts"][host].get(key, 6 << 20)
            new["hosts"][host][key] = round(value) if value else LARGER * now
        return [(f"{action}: {setting.split('.')[-1]}", GOODPUT, changed(change))]

    def asked_window():
        def larger(new, link, flow):
            flow["window"] = round(value or 2 * flow["window"])
            scaled(new, link, flow)

        def none(new, link, flow):
            flow.pop("window", None)
            new["hosts"]["far"]["receive_buffer"] = max(6 << 20, round(8 * path.bdp))
            scaled(new, link, flow)

        def scaled(new, link, flow):
            also = remedy.get("also") or {}
            if also.get("action") == "set":
                new["hosts"][also["host"]].pop("window_scaling", None)
            elif also.get("action") in ("pass_window_scaling", "find_window_scaling"):
                link.get("reverse", {}).pop("window_scale", None)
        return [("ask_window: larger", GOODPUT, changed(larger)), ("ask_window: none", GOODPUT, changed(none))]

    def no_errors(new, link, flow):
        for part in (link, link.get("forward", {})):
            part.pop("loss", None)
            part.pop("corrupt", None)
        if (remedy.get("also") or {}).get("action") == "enable_sack":
            for end in new["hosts"].values():
                end.pop("sack", None)

    def turned_on(new, link, flow):
        new["hosts"][host].pop(setting.split("tcp_")[-1], None)

    def first_step(new, link, flow):
        for part in (link, link.get("forward", {})):
            part.pop("outage", None)
            for key in ("rate", "delay"):
                if isinstance(part.get(key), dict):
                    part[key] = part[key]["steps"][0][1]

    def with_mtu_probing(new, link, flow):
        new["hosts"][host]["sysctls"] = {"net.ipv4.tcp_mtu_probing": "1"}

    def faster(new, link, flow):
        link["rate"] = 2 * link["rate"]
        link["limit"] = 2 * link["limit"]

    def way_back(new, link, flow):
        link.pop("reverse", None)

    def alone(new, link, flow):
        del new["flow"][1:]

    def smaller(new, link, flow):
        flow["window"] = round(value)
        # One of the two sets the receiver's buffer.
        new["hosts"]["far"].pop("receive_buffer", None)

    simple = {
        "smaller_window": lambda: value and [(action, QUEUE, changed(smaller))],
        "set": lambda: [(f"set: {setting.split('.')[-1]}", GOODPUT, changed(turned_on))],
        "pass_window_scaling": lambda: [(action, GOODPUT, without("window_scale"))],
        "find_window_scaling": lambda: [(action, GOODPUT, without("window_scale"))],
        "ask_window": asked_window,
        "find_errors": lambda: [("find_errors: gone", GOODPUT, changed(no_errors))] + ([by_rate()] if setting else []),
        "deepen_queue": lambda: [queue()] + ([by_rate()] if setting else []),
        "add_capacity": lambda: [("add_capacity: faster link", GOODPUT, changed(faster))] + ([queue()] if value else []) + ([by_rate()] if setting else []),
        "shape_to_rate": lambda: value and [(action, LOSS, changed(lambda new, link, flow: flow.update(writer={"rate": round(value)})))],
        "raise_marking": lambda: [(action, GOODPUT, changed(lambda new, link, flow: link["forward"].update(ecn_threshold=full)))],
        "free_reader": lambda: [(action, GOODPUT, changed(lambda new, link, flow: flow.pop("reader", None)))],
        "free_writer": lambda: [(action, GOODPUT, changed(lambda new, link, flow: flow.pop("writer", None)))],
        "disable_nagle": lambda: [(action, GOODPUT, changed(lambda new, link, flow: flow.update(nodelay=True)))],
        "enable_sack": lambda: [(action, GOODPUT, changed(lambda new, link, flow: [host.pop("sack", None) for host in new["hosts"].values()]))],
        "keep_connection": lambda: [("keep_connection: initcwnd", GOODPUT, changed(lambda new, link, flow: new["hosts"]["near"].update(initial_window=64)))],
        "fix_way_back": lambda: [(action, GOODPUT, changed(way_back))],
        "fix_duplex": lambda: [(action, GOODPUT, without("half_duplex"))],
        "find_traffic": lambda: [(action, GOODPUT, changed(alone))],
        "find_spreading": lambda: [(action, GOODPUT, without("reorder"))],
        "find_outage": lambda: [(action, GOODPUT, changed(first_step))],
        "probe_mtu": lambda: [(action, GOODPUT, changed(with_mtu_probing))] if host else [],
        "lower_rate": lambda: value and [(action, LOSS, changed(lambda new, link, flow: flow.update(rate=round(0.98 * value))))],
    }
    if action == "raise_maximum":
        return sized({"net.ipv4.tcp_rmem": "receive_buffer", "net.ipv4.tcp_wmem": "send_buffer"}[setting])
    return simple.get(action, lambda: [])() or []


def toml(value, name=None):
    """A scenario as a file has it: tables of hosts, lists of tables for links and flows, all else in one line."""
    if name is not None:
        return f"{name} = {line(value)}\n"
    text = "".join(toml(v, k) for k, v in value.items() if k not in ("hosts", "link", "flow"))
    for host, keys in value.get("hosts", {}).items():
        text += f"[hosts.{host}]\n" + "".join(toml(v, k) for k, v in keys.items())
    for kind in ("link", "flow"):
        for table in value.get(kind, []):
            parts = {k: v for k, v in table.items() if k in ("forward", "reverse") and v}
            text += f"[[{kind}]]\n" + "".join(toml(v, k) for k, v in table.items() if k not in ("forward", "reverse"))
            text += "".join(f"[{kind}.{part}]\n" + "".join(toml(v, k) for k, v in keys.items()) for part, keys in parts.items())
    return text


def line(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{k}" = {line(v)}' if "." in k else f"{k} = {line(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(line(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
