# What sysctl reads and sets here. A limit that is higher already is left as it is.
boot() { say any; }

name() { printf '%s' "$2"; }
wanted() {
    case $1 in
    at_least) printf '%s' "at least $3" ;;
    *) printf '%s' "$3" ;;
    esac
}
now() { sysctl -n "$2" 2>/dev/null || say absent; }

check() {
    command -v sysctl >/dev/null || fail "'sysctl' is missing; nothing was changed"
    [ "$(now "$@")" != absent ] || say "$2 is not there in this release, and is left out"
}

change() {
    current=$(now "$@")
    [ "$current" != absent ] || return 0
    case $1 in
    at_least)
        [ "$current" -lt "$3" ] 2>/dev/null || return 0
        ;;
    algorithm)
        case " $(sysctl -n net.inet.tcp.cc.available 2>/dev/null) " in
        *[!a-z0-9_]"$3"[!a-z0-9_]*) ;;
        *) kldload -n "cc_$3" || return 1 ;;
        esac
        ;;
    esac
    sysctl "$2=$3" >/dev/null
}

is_ours() {
    current=$(plain "$1")
    shift
    [ "$current" != absent ] || return 0
    case $1 in
    at_least) [ "$current" -ge "$3" ] 2>/dev/null ;;
    *) [ "$current" = "$3" ] ;;
    esac
}

restore() { sysctl "$3=$1" >/dev/null; }

