state=${BDP_TUNE_STATE:-$default_state}
magic='bdp tune export 1'
temporary=

say() { printf '%s\n' "$*"; }
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}
clean() { [ -z "$temporary" ] || rm -f "$temporary"; }
trap clean EXIT
trap 'exit 130' HUP INT TERM

# Text in one line, single spaces between its words.
plain() {
    # shellcheck disable=SC2086 # Split on purpose.
    set -- $1
    printf '%s' "$*"
}

# The line that begins so in the record, without that beginning.
recorded() {
    while IFS= read -r line; do
        case $line in
        "$1 "*)
            printf '%s' "${line#"$1 "}"
            return 0
            ;;
        esac
    done <"$state"
    return 1
}

# On the disk before anything is changed.
keep() { sync "$1" 2>/dev/null || sync; }

folder() {
    case $state in
    */*) printf '%s' "${state%/*}/" ;;
    *) printf '%s' ./ ;;
    esac
}

needs_root() { [ "$(id -u)" = 0 ] || fail "'$1' needs root"; }

# Whether there is a record, and it is this script's.
is_applied() {
    [ -e "$state" ] || return 1
    IFS= read -r line <"$state" || line=
    if [ "$line" != "$magic" ] || [ "$(recorded end)" != record ]; then
        fail "$state is damaged, or not a record of settings"
    fi
    [ "$(recorded plan)" = "$plan" ] || fail "$state is the record of another plan; undo that first, by its own script"
    return 0
}

# Whether the machine was started again since.
is_stale() { [ "$(recorded boot)" != "$(boot)" ]; }

check_item() {
    shift
    check "$@"
}
before_item() {
    number=$1
    shift
    before=$(now "$@") || fail "cannot read $(name "$@")"
    say "before $number $(plain "$before")" || fail "cannot write $temporary"
}
after_item() {
    number=$1
    shift
    say "after $number $(plain "$(now "$@")")"
}
set_item() {
    [ -z "$failed" ] || return 0
    shift
    if change "$@" && is_ours "$(now "$@")" "$@"; then
        say "$(name "$@"): $(wanted "$@")"
    else
        failed="cannot set $(name "$@") to '$(wanted "$@")': it is '$(now "$@")'"
    fi
}

# Whether it is as apply left it.
is_as_left() {
    if after=$(recorded "after $1"); then
        shift
        [ "$(plain "$(now "$@")")" = "$after" ]
    else
        # Ended between the settings and their record.
        shift
        is_ours "$(now "$@")" "$@"
    fi
}

undo_item() {
    [ "$1" = "$at" ] || return 0
    number=$1
    shift
    before=$(recorded "before $number") || {
        failed="$state lacks what $(name "$@") was"
        return 0
    }
    current=$(plain "$(now "$@")")
    if [ "$current" = "$before" ]; then
        say "$(name "$@"): $before, as before"
    elif is_as_left "$number" "$@"; then
        restore "$before" "$@" 2>/dev/null
        current=$(plain "$(now "$@")")
        if [ "$current" = "$before" ]; then
            say "$(name "$@"): $before"
        else
            failed="cannot put back $(name "$@"): it is '$current', and was '$before'"
        fi
    else
        left="$left
left alone: $(name "$@") is '$current', which is neither what apply set nor what was there ('$before')"
    fi
}

undo_all() {
    failed=
    left=
    at=$count
    while [ "$at" -gt 0 ]; do
        items undo_item
        at=$((at - 1))
    done
}

apply() {
    needs_root apply
    if is_applied; then
        is_stale || fail "applied already, see $state; '$0 status' shows it, '$0 undo' ends it"
        say "applied before the last boot, which ended it"
        rm -f "$state"
    fi
    items check_item
    mkdir -p "$(folder)" || fail "cannot make $(folder)"
    temporary=$state.$$
    {
        say "$magic" && say "plan $plan" && say "boot $(boot)" && items before_item && say 'end record'
    } >"$temporary" || fail "cannot write $temporary"
    keep "$temporary"
    # A link is made by one alone.
    ln "$temporary" "$state" 2>/dev/null || fail "cannot make $state: another apply was faster, or the folder takes none"
    # Not one file by two names, which the next writing would empty.
    rm -f "$temporary"
    keep "$(folder)"
    failed=
    items set_item
    if [ -n "$failed" ]; then
        why=$failed
        undo_all
        [ -z "$failed" ] || fail "$why; $failed; '$0 undo' tries again"
        rm -f "$state"
        fail "$why; all is as before"
    fi
    if ! { cat "$state" && items after_item; } >"$temporary" || ! keep "$temporary" || ! mv -f "$temporary" "$state"; then
        fail "set, but cannot write $state; '$0 undo' ends it"
    fi
    keep "$(folder)"
    say "applied; '$0 undo' ends it"
}

undo() {
    needs_root undo
    is_applied || {
        say 'nothing is applied'
        return 0
    }
    if is_stale; then
        rm -f "$state"
        say 'applied before the last boot, which ended it'
        return 0
    fi
    undo_all
    [ -z "$failed" ] || fail "$failed; $state stays"
    rm -f "$state"
    keep "$(folder)"
    [ -z "$left" ] || {
        say "${left#?}" >&2
        exit 3
    }
    say 'undone'
}

status_item() {
    number=$1
    shift
    if [ -z "$applied" ]; then
        say "$(name "$@"): $(plain "$(now "$@")") (plan: $(wanted "$@"))"
    elif is_as_left "$number" "$@"; then
        say "$(name "$@"): $(plain "$(now "$@")"), by this plan (before: $(recorded "before $number"))"
    else
        code=3
        say "$(name "$@"): $(plain "$(now "$@")"), changed since (plan: $(wanted "$@"); before: $(recorded "before $number"))"
    fi
}

# 0: applied and in force; 1: not applied; 3: something was changed since.
status() {
    applied=
    code=1
    if is_applied && ! is_stale; then
        applied=1
        code=0
    fi
    items status_item
    case $code in
    0) say applied ;;
    1) say 'not applied' ;;
    3) say 'applied, and changed since' ;;
    esac
    exit "$code"
}

case ${1-} in
apply) apply ;;
undo) undo ;;
status) status ;;
*)
    say "usage: sh $0 apply|undo|status" >&2
    exit 2
    ;;
esac
