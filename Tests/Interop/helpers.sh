# What the checks of programs in this folder share; each sources it, and sets `check` to its name, `ferry` to the program and `work` to its folder.
# shellcheck shell=bash disable=SC2154
fail() {
    echo "$check: $1" >&2
    tail -n 20 "$work"/*.log >&2
    exit 1
}
# wait_for WHAT COMMAND...: for two minutes.
wait_for() {
    local what=$1
    shift
    for _ in $(seq 1200); do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "not within two minutes: $what"
}
# key HOME [OPTION...]: the public key of a home.
key() { FERRY_HOME=$1 "$ferry" key "${@:2}" 2>/dev/null | grep -o 'ferry1[a-z0-9]*' | head -n 1; }
