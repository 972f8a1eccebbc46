#!/usr/bin/env bash
# Runs the commands of Documentation/Operations.md as they stand there, with paths in a folder of its own and functions in the place of
# systemctl and runuser. A nats-server and a sealed peer are there throughout; after each part the peer sends 50 records more, and the stream
# must have each once. `scripts/check operations` runs it.
#
#     Tests/Interop/operations.sh FERRY FOLDER
set -euo pipefail
ferry=$1 work=$2 page=Documentation/Operations.md
# The machine that there is: a link to the old one, or to the new one.
old=$work/old new=$work/new root=$work/machine
server='' gateway='' sent=0
check=operations
# shellcheck source=Tests/Interop/helpers.sh
. Tests/Interop/helpers.sh
trap 'kill $gateway $server 2>/dev/null || true' EXIT
systemctl() {
    case $* in
        'start ferry-gateway' | 'enable --now ferry-gateway')
            [ -z "$gateway" ] || fail "the gateway was begun while it runs"
            : >"$work/gateway.log"
            FERRY_HOME=$root/var/lib/ferry "$ferry" gateway --config "$root/etc/ferry/gateway.json" >>"$work/gateway.log" 2>&1 &
            gateway=$!
            # As systemd does, which the gateway tells that it is ready.
            wait_for "the gateway is ready" grep -q 'connected, ' "$work/gateway.log"
            ;;
        'stop ferry-gateway' | 'disable --now ferry-gateway')
            kill -TERM "$gateway"
            wait "$gateway" || fail "the gateway ended with $?"
            gateway=
            ;;
        'reload ferry-gateway') kill -HUP "$gateway" ;;
        *) fail "the page has: systemctl $*" ;;
    esac
}
# runuser -u ferry -- COMMAND...
runuser() { "${@:4}"; }
ferry() { "$ferry" "$@"; }
env() { command env "${1}" "$ferry" "${@:3}"; }

# part HEADING [NUMBER]: runs the block of that number (1 unless given) below a heading.
part() {
    local heading=$1 number=${2:-1}
    awk -v heading="## $heading" -v number="$number" '
        /^## / { inside = $0 == heading; block = 0; before = 0 }
        inside && /^    / { if (!before) block++; if (block == number) print substr($0, 5); before = 1; next }
        { before = 0 }' "$page" |
        sed "s|/var/lib/ferry|$root/var/lib/ferry|g; s|/etc/ferry|$root/etc/ferry|g; s|/backup|$work/backup|g; s|-C / |-C $root |
             s|/usr/local/bin/ferry|$work/bin/ferry|g; s|install -m 755 ferry|install -m 755 $ferry|; s|NEWKEY|${new_key-}|; s|STORE|${store-}|" >"$work/part.sh"
    [ -s "$work/part.sh" ] || fail "the page has no block $number below $heading"
    # shellcheck disable=SC1091
    . "$work/part.sh"
    echo "operations: $heading: done"
}

messages() { "$ferry" gateway --check --config "$root/etc/ferry/gateway.json" 2>/dev/null | grep -o 'has [0-9]*' | tr -dc 0-9; }
has_all() { [ "$(messages)" = "$sent" ]; }
# The peer, of a home of its own, sends 50 lines; all of them are in the stream once.
send() { # HOME
    seq $((sent + 1)) $((sent + 50)) | FERRY_HOME=$work/$1 timeout 120 "$ferry" send --sealed --store "$work/$1/outbox" --transport "unix:$work/s" --lines - \
        >>"$work/send.log" 2>&1 || fail "the peer could not send"
    sent=$((sent + 50))
    wait_for "$sent records in the stream" has_all
    echo "operations: the stream has $sent records"
}

mkdir -p "$old"/{var/lib,etc}/ferry "$new" "$work"/{backup,bin,peer,other}
ln -s "$old" "$root"
printf 'authorization { users: [{user: a, password: one}, {user: b, password: two}] }\njetstream { store_dir: "%s/nats" }\n' "$work" >"$work/nats.conf"
nats-server -c "$work/nats.conf" -a 127.0.0.1 -p -1 --ports_file_dir "$work" -l "$work/nats.log" </dev/null &
server=$!
wait_for "the nats-server's port" test -s "$work/nats-server_$server.ports"
port=$(grep -o '127.0.0.1:[0-9]*' "$work/nats-server_$server.ports" | head -n 1)
cat >"$old/etc/ferry/gateway.json" <<JSON
{"name": "gateway-1", "transport": "unix:$work/s", "trust": {"seal": "always"}, "store": "$root/var/lib/ferry/gateway.ferry",
 "nats": {"servers": ["nats://a:one@$port"], "stream": "ferry", "prefix": "ferry.records", "streamBytes": 10000000}}
JSON
gateway_key=$(key "$old/var/lib/ferry")
FERRY_HOME=$old/var/lib/ferry "$ferry" trust "$(key "$work/peer")" press-7 >/dev/null
FERRY_HOME=$work/peer "$ferry" trust "$gateway_key" gateway >/dev/null
systemctl start ferry-gateway
send peer
part 'Back up'
send peer
part 'Restore'
send peer
"$ferry" outbox list "$work/peer/outbox" | grep -q 'its store comes from a backup' || fail "the peer has no notice of the backup"
part 'Move to other hardware'
ln -sfn "$new" "$root"
part 'Move to other hardware' 2
send peer
part 'Upgrade'
"$work/bin/ferry" --version >/dev/null
send peer
sed -i 's|a:one|b:two|' "$new/etc/ferry/gateway.json"
part "Change the server's password or certificate"
printf 'authorization { users: [{user: b, password: two}] }\njetstream { store_dir: "%s/nats" }\n' "$work" >"$work/nats.conf"
kill -HUP $server
send peer
new_key=$(key "$work/other")
FERRY_HOME=$work/other "$ferry" trust "$gateway_key" gateway >/dev/null
part "Change a peer's key"
send other
if echo late | FERRY_HOME=$work/peer timeout 60 "$ferry" send --sealed --store "$work/peer/outbox" --transport "unix:$work/s" --timeout 5 --lines - \
    >"$work/late.log" 2>&1; then fail "the key that was removed still comes in"; fi
part "Change the gateway's key"
changed=$(key "$new/var/lib/ferry" --identity "$new/var/lib/ferry/key.new")
FERRY_HOME=$work/other "$ferry" trust "$changed" gateway-new >/dev/null
part "Change the gateway's key" 2
[ "$(key "$new/var/lib/ferry")" = "$changed" ] || fail "the gateway has another key than the new one"
store=$work/other/outbox
part "Change the gateway's key" 3
send other
echo "operations: all of $page holds"
