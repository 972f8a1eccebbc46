#!/usr/bin/env bash
# Commands and a file for a peer, as programs: `ferry command` through a gateway to a sealed `ferry send`, while the peer, the gateway, the
# server and the sender of the file are killed. Each command runs at most once and has its answer; the file arrives as it is.
# `scripts/check commands` runs it.
#
#     Tests/Interop/commands.sh FERRY FOLDER [SEED]
set -euo pipefail
ferry=$1 work=$2
RANDOM=${3:-1}
count=${COMMANDS:-25} size=${FILE_BYTES:-2000000}
check=commands
# shellcheck source=Tests/Interop/helpers.sh
. Tests/Interop/helpers.sh
declare -A running=()
trap 'kill -9 "${running[@]}" 2>/dev/null || true' EXIT

mkdir -p "$work"/{peer,gateway,run,new}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
nats=nats://127.0.0.1:$port

start() {
    case $1 in
        server) nats-server -a 127.0.0.1 -p "$port" -js -sd "$work/nats" -l "$work/nats.log" </dev/null & ;;
        gateway)
            FERRY_HOME=$work/gateway "$ferry" gateway --sealed --transport "unix:$work/s" --store "$work/gateway/store" --nats "$nats" \
                --downlink ferry-down --config "$work/gateway.json" </dev/null >>"$work/gateway.log" 2>&1 &
            ;;
        peer)
            # Its input never ends, so that it stays.
            FERRY_HOME=$work/peer "$ferry" send --sealed --store "$work/peer/store" --transport "unix:$work/s" --timeout 600 --lines \
                --inbox "$work/inbox" --commands "$work/run" --files "$work/new" - <"$work/input" >>"$work/peer.log" 2>&1 &
            ;;
    esac
    running[$1]=$!
}
again() { # WHO
    kill -9 "${running[$1]}"
    wait "${running[$1]}" 2>/dev/null || true
    start "$1"
}

printf '{"nats": {"streamBytes": 50000000}, "downlink": {"streamBytes": 50000000}, "keepSeconds": 5}\n' >"$work/gateway.json"
cat >"$work/run/note" <<'SH'
#!/bin/sh
line=$(cat)
echo "$line" >>../noted
# Long enough to be killed in.
sleep 0.3
echo "noted $line, $FERRY_COMMAND"
SH
printf '#!/bin/sh\necho "there is no power" >&2\nexit 3\n' >"$work/run/fail"
printf 'no program\n' >"$work/run/readme"
chmod +x "$work/run/note" "$work/run/fail"
mkfifo "$work/input"
# Held open, so that the peer's input never ends.
exec 9<>"$work/input"
start server
peer=$(key "$work/peer")
FERRY_HOME=$work/peer "$ferry" trust "$(key "$work/gateway")" gateway >>"$work/trust.log" 2>&1
FERRY_HOME=$work/gateway "$ferry" trust "$peer" press-7 >>"$work/trust.log" 2>&1
start gateway
start peer
command() { timeout 300 "$ferry" command "$1" --nats "$nats" "${@:2}"; }
first() { [ "$(command call "$peer" note first --within 20 2>>"$work/command.log")" = "noted first, note" ]; }
wait_for "a first answer" first
noted() { grep -cxF "$1" "$work/noted" || true; }

# Whether the server was away before anything was sent, which is told at once.
unreached() { grep -qE 'cannot be (connected to|looked at|followed)' "$work/words"; }

# One command after another, and in the middle of some of them something is killed.
interrupted=0
for number in $(seq "$count"); do
    command call "$peer" note "number $number" --within 250 >"$work/answer" 2>"$work/words" &
    caller=$!
    sleep "0.$((RANDOM % 5))"
    case $((RANDOM % 5)) in
        0) again peer ;;
        1) again gateway ;;
        2) again server ;;
    esac
    if wait "$caller"; then
        [ "$(cat "$work/answer")" = "noted number $number, note" ] || fail "command $number has the answer $(cat "$work/answer")"
        [ "$(noted "number $number")" = 1 ] || fail "command $number was answered, and ran $(noted "number $number") times"
    elif unreached; then
        [ "$(noted "number $number")" = 0 ] || fail "command $number was not sent, and ran"
    else
        grep -q 'it was interrupted' "$work/words" || fail "command $number: $(cat "$work/words")"
        [ "$(noted "number $number")" -le 1 ] || fail "command $number ran $(noted "number $number") times"
        interrupted=$((interrupted + 1))
    fi
done
echo "commands: $count commands have their answers, of which $interrupted were interrupted; none ran twice"

# refused NAME WORDS: ends with 1 and says why.
refused() {
    if command call "$peer" "$1" >"$work/answer" 2>"$work/words"; then fail "$1 was done"; fi
    grep -qF "$2" "$work/words" || fail "$1: $(cat "$work/words")"
}
refused fail 'it failed. It ended with 3. there is no power'
refused readme 'it is unknown there. The peer has no command readme.'
refused missing 'it is unknown there'
echo "commands: failures and unknown commands are told"

head -c "$size" /dev/urandom >"$work/firmware.bin"
send_file() { # in the background
    command file "$peer" "$work/firmware.bin" --piece 4096 --within 280 >"$work/answer" 2>"$work/words" &
    running[sender]=$!
}
send_file
kills=0
for who in sender peer gateway sender server peer; do
    sleep "0.$((3 + RANDOM % 5))"
    kill -0 "${running[sender]}" 2>/dev/null || break
    kills=$((kills + 1))
    if [ $who = sender ]; then
        kill -9 "${running[sender]}"
        wait "${running[sender]}" 2>/dev/null || true
        send_file
    else
        again $who
    fi
done
until wait "${running[sender]}"; do
    unreached || fail "the file was not sent: $(cat "$work/words")"
    send_file
done
cmp "$work/firmware.bin" "$work/new/firmware.bin" || fail "the file is another one"
[ "$(ls -A "$work/new")" = firmware.bin ] || fail "parts are left: $(ls -A "$work/new")"
# Once more: it is there, and nothing is sent.
command file "$peer" "$work/firmware.bin" >"$work/answer" 2>"$work/words" || fail "$(cat "$work/words")"
echo "commands: a file of $size bytes arrived whole, though something was killed $kills times"
