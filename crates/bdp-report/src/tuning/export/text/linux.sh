# What Linux reads and sets: sysctls by /proc/sys, routes by ip, queueing disciplines by tc.
default_state=/var/lib/bdp-tune/applied
family=
length=

boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || say unknown; }

name() {
    case $1 in
    sysctl) printf '%s' "$2" ;;
    route) printf '%s' "route to $2" ;;
    qdisc) printf '%s' "qdisc of $2" ;;
    esac
}
wanted() {
    shift 2
    plain "$*"
}

# net.ipv4.conf.eth0/100.mtu is /proc/sys/net/ipv4/conf/eth0.100/mtu.
file_of() { printf '/proc/sys/%s' "$(printf '%s' "$1" | tr ./ /.)"; }

family_of() {
    case $1 in
    *:*) family=-6 length=128 ;;
    *) family=-4 length=32 ;;
    esac
}

now() {
    case $1 in
    sysctl) cat "$(file_of "$2")" ;;
    route)
        family_of "$2"
        route=$(ip "$family" -o route show exact "$2/$length" 2>/dev/null)
        printf '%s' "${route:-none}"
        ;;
    qdisc)
        # shellcheck disable=SC2046 # Split on purpose.
        set -- $(tc qdisc show dev "$2" root 2>/dev/null)
        kept=
        while [ $# -gt 0 ]; do
            # How many refer to it is no setting.
            if [ "$1" = refcnt ]; then shift 2 && continue; fi
            kept="$kept $1"
            shift
        done
        printf '%s' "${kept:-none}"
        ;;
    esac
}

check() {
    case $1 in
    sysctl)
        file=$(file_of "$2")
        [ -e "$file" ] || fail "$2 is not there: this kernel, or this network namespace, lacks it; nothing was changed"
        [ -w "$file" ] || fail "$2 cannot be written here; nothing was changed"
        ;;
    route)
        command -v ip >/dev/null || fail "'ip' is missing (Debian: iproute2); nothing was changed"
        case $(now "$@") in
        none) [ -n "$(way_to "$2")" ] || fail "no route leads to $2 by a device; nothing was changed" ;;
        *'
'*) fail "several routes lead to $2 alone; nothing was changed" ;;
        esac
        ;;
    qdisc)
        command -v tc >/dev/null || fail "'tc' is missing (Debian: iproute2); nothing was changed"
        # The kernel's own has handle 0:, and comes back when another one is deleted.
        case $(now "$@") in
        *' qdisc '*' 0: '* | *' qdisc '*' 0:') ;;
        none) fail "device $2 is not there; nothing was changed" ;;
        *) fail "someone set the qdisc of $2 ($(plain "$(now "$@")")), which tc cannot put back; nothing was changed" ;;
        esac
        ;;
    esac
}

# The way that packets to an address take now, as words for ip route.
way_to() {
    family_of "$1"
    # shellcheck disable=SC2046 # Split on purpose.
    set -- $(ip "$family" -o route get "$1" 2>/dev/null)
    case ${1-} in
    '' | local | broadcast | multicast | unreachable | prohibit | blackhole) return 0 ;;
    esac
    # An MTU with a lifetime was learned, and is no setting.
    case " $* " in *' expires '*) learned=1 ;; *) learned= ;; esac
    shift
    way=
    while [ $# -gt 1 ]; do
        case $1 in
        via)
            way="$way via"
            # 'via inet6 ADDRESS' is a next hop of the other family.
            [ "$2" != inet6 ] || { way="$way inet6" && shift; }
            way="$way $2"
            shift
            ;;
        dev | src | window | advmss | hoplimit | initcwnd | initrwnd | quickack | features)
            way="$way $1 $2"
            shift
            ;;
        mtu | congctl | rto_min)
            key=$1
            shift
            lock=
            [ "$1" != lock ] || { lock=' lock' && shift; }
            [ "$key" != rto_min ] || lock=
            [ "$key" = mtu ] && [ -n "$learned" ] || way="$way $key$lock $1"
            ;;
        esac
        shift
    done
    printf '%s' "$way"
}

# The words of a route as ip takes them back, without the attributes that are named.
route_words() {
    words=$1
    shift
    without=" $* "
    # shellcheck disable=SC2086 # Split on purpose.
    set -- $words
    kept=
    while [ $# -gt 0 ]; do
        case $1 in
        dead | linkdown | offload | trap | rt_offload | cache) ;;
        expires) shift ;;
        congctl | initcwnd | initrwnd | rto_min)
            key=$1
            lock=
            [ "${2-}" != lock ] || { lock=' lock' && shift; }
            # ip prints 'rto_min lock', and takes it without.
            [ "$key" != rto_min ] || lock=
            case $without in
            *" $key "*) ;;
            *) kept="$kept $key$lock ${2-}" ;;
            esac
            [ $# -lt 2 ] || shift
            ;;
        *) kept="$kept $1" ;;
        esac
        shift
    done
    printf '%s' "$kept"
}

change() {
    case $1 in
    sysctl) (printf '%s\n' "$3" >"$(file_of "$2")") 2>/dev/null ;;
    route)
        to=$2
        shift 2
        family_of "$to"
        old=$(now route "$to")
        keys=
        odd=1
        for word in "$@"; do
            [ -z "$odd" ] || keys="$keys $word"
            [ -n "$odd" ] && odd='' || odd=1
        done
        if [ "$old" = none ]; then old=$(way_to "$to"); else old=${old#* }; fi
        # shellcheck disable=SC2046,SC2086 # Split on purpose.
        ip "$family" route replace "$to/$length" $(route_words "$old" $keys) "$@"
        ;;
    qdisc)
        device=$2
        shift 2
        tc qdisc replace dev "$device" root "$@"
        ;;
    esac
}

# Whether what is there is what this plan sets.
is_ours() {
    current=" $(plain "$1") "
    shift
    case $1 in
    sysctl) [ "$current" = " $(plain "$3") " ] ;;
    route)
        shift 2
        while [ $# -gt 1 ]; do
            case $current in
            *" $1 $2 "* | *" $1 lock $2 "*) ;;
            *) return 1 ;;
            esac
            shift 2
        done
        ;;
    qdisc)
        # tc prints rates in units of its own: the kind is compared.
        case $current in
        " qdisc $3 "*) ;;
        *) return 1 ;;
        esac
        ;;
    esac
}

restore() {
    before=$1
    shift
    case $1 in
    sysctl) (printf '%s\n' "$before" >"$(file_of "$2")") ;;
    route)
        family_of "$2"
        if [ "$before" = none ]; then
            ip "$family" route del "$2/$length"
        else
            # shellcheck disable=SC2046 # Split on purpose.
            ip "$family" route replace "$2/$length" $(route_words "${before#* }")
        fi
        ;;
    qdisc) tc qdisc del dev "$2" root ;;
    esac
}

