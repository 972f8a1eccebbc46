#!/bin/bash
# For the guest: a gateway as a service of a real systemd, by the unit of Examples/Gateway as it is: begun, looked at, reloaded, stopped
# by its watchdog, killed and ended.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/service.sh .build-traits/debug/ferry
set -u
. /guest/root/bluez.sh
unit=ferry-gateway
export PATH=$PATH:/usr/sbin:/sbin

# Once more, as the first process of a namespace of its own, which systemd must be.
if [ "${1-}" = --init ]; then
    # The number outside, as long as /proc is of outside.
    cut -d ' ' -f 4 /proc/self/stat >/tmp/init.pid
    mount -t proc proc /proc
    mount -t tmpfs run /run
    mount -t cgroup2 cgroup /sys/fs/cgroup
    mkdir -p /etc/systemd/system/$unit.service.d
    # The gateway and what it needs, and not a whole system.
    printf '[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n' >/etc/systemd/system/nothing.target
    exec env -i PATH="$PATH" container=ferry /lib/systemd/systemd --system --unit=nothing.target --log-target=console --show-status=0
fi

ferry=$1
install -m 755 "$ferry" /usr/local/bin/ferry
install -m 644 Examples/Gateway/$unit.service /etc/systemd/system/
grep -q '^ferry:' /etc/passwd || echo 'ferry:x:877:877::/var/lib/ferry:/usr/sbin/nologin' >>/etc/passwd
grep -q '^ferry:' /etc/group || echo 'ferry:x:877:' >>/etc/group
mkdir -p /etc/ferry "/etc/systemd/system/$unit.service.d"
# Quicker than in use, its log where this script reads it, and without the rest of a system.
cat >"/etc/systemd/system/$unit.service.d/test.conf" <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
WatchdogSec=10
RestartSec=1
StandardOutput=append:/results/gateway.log
StandardError=append:/results/gateway.log
LoadCredential=key:/etc/ferry/key
UNIT
# As in Examples/Gateway, and with the key as a credential.
FERRY_HOME=/etc/ferry /usr/local/bin/ferry key >/results/key.log
ls -la /etc/ferry >/results/etc.log
cat >/etc/ferry/gateway.json <<'JSON'
{"name": "gateway-1", "transport": "tcp:127.0.0.1:7070", "store": "/var/lib/ferry/gateway.ferry",
 "nats": {"servers": ["nats://127.0.0.1:4222"], "stream": "ferry", "prefix": "ferry.records"}, "metrics": "127.0.0.1:9469",
 "trust": {"identity": "/run/credentials/ferry-gateway.service/key"}}
JSON
ip link set lo up
# The guest's disk is its memory: the server is to promise more than it has.
printf 'jetstream { store_dir: /tmp/nats, max_file_store: 4GB }\n' >/tmp/nats.conf
(exec nats-server -c /tmp/nats.conf -a 127.0.0.1 -p 4222 -l /results/nats.log) &
nats=$!
unshare --pid --fork --mount --kill-child bash "$0" --init >/results/systemd.log 2>&1 &
systemd=$!
wait_until 600 test -s /tmp/init.pid
init=$(cat /tmp/init.pid)
inside() { nsenter --target "$init" --mount --pid --root --wd "$@"; }
control() { inside systemctl --no-pager "$@"; }
property() { control show -p "$1" --value $unit; }
has() { [ "$(property "$1")" = "$2" ]; }
is_answered() { control is-system-running 2>/dev/null | grep -q running; }
expect() { # WHAT COMMAND...: says whether the command holds within a minute.
    local what=$1
    shift
    if wait_until 600 "$@"; then say "$what: yes"; else
        say "$what: NO"
        control status $unit
        cat /results/gateway.log
        exit 1
    fi
}
tells() { property StatusText | grep -q "$1"; }
says() { grep -q "$1" /results/gateway.log; }

expect "systemd answers" is_answered
control start $unit
say "started: status $?"
expect "it is active when it says that it is ready" has ActiveState active
expect "systemctl status has its line of status" tells "^connected, 0 published"
first=$(property MainPID)
user=$(inside stat -c %U "/proc/$first")
expect "it runs as its own user, not as $user" test "$user" = ferry

# A peer is let in as the page says, and its record goes through.
as_ferry() { inside setpriv --reuid=ferry --regid=ferry --clear-groups env FERRY_HOME=/var/lib/ferry /usr/local/bin/ferry "$@"; }
FERRY_HOME=/tmp/peer /usr/local/bin/ferry key >/results/peer-key.log
as_ferry trust "$(grep -o 'ferry1[a-z0-9]*' /results/peer-key.log | head -n 1)" press-7
FERRY_HOME=/tmp/peer /usr/local/bin/ferry trust "$(grep -o 'ferry1[a-z0-9]*' /results/key.log | head -n 1)" gateway >/dev/null
send() { echo "$1" | FERRY_HOME=/tmp/peer timeout 120 /usr/local/bin/ferry send --store /tmp/outbox --transport tcp:127.0.0.1:7070 --lines - >>/results/send.log 2>&1; }
expect "a record goes through" send one
expect "and is published" tells "^connected, 1 published"

sed -i 's/"metrics"/"statusSeconds": 5, "metrics"/' /etc/ferry/gateway.json
control reload $unit
say "reloaded: status $?"
expect "the configuration was read again" says "the configuration was read again"
expect "by the same process" has MainPID "$first"
expect "which is active" has ActiveState active
echo '{"nonsense": 1}' >/etc/ferry/wrong.json
cp /etc/ferry/gateway.json /etc/ferry/right.json
cp /etc/ferry/wrong.json /etc/ferry/gateway.json
control reload $unit
expect "a wrong one changes nothing" says "Nothing is changed"
cp /etc/ferry/right.json /etc/ferry/gateway.json
expect "and it is active" has ActiveState active

inside kill -STOP "$first"
expect "one that hangs is ended by the watchdog and begun again" has NRestarts 1
expect "and is active again" has ActiveState active
expect "a record goes through again" send two
inside kill -KILL "$(property MainPID)"
expect "one that is killed is begun again" has NRestarts 2
expect "and is active once more" has ActiveState active
expect "a third record goes through" send three
control stop $unit
expect "it is stopped" has ActiveState inactive
expect "and ended well" has Result success
expect "and said so" says "unpublished records stay in"
control reset-failed
kill $nats
kill -KILL "$init"
wait $nats $systemd 2>/dev/null
say "a gateway is a service of systemd's"
