#!/bin/bash
# For the guest: ferry's tools over two adapters of one bluetoothd, as people use them.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/tools.sh .build-traits/debug/business-card .build-traits/debug/ferry
set -u
. /guest/root/bluez.sh
card=$1 ferry=$2
value=9D534E8B-2153-4F6D-B2B0-8C68665A7274
one="--transport bluez:hci0" two="--transport bluez:hci1"
failed=0
start_controllers 2 && start_bluetoothd 2 || exit 1

# shellcheck disable=SC2086
{
    "$card" serve $one --timeout 300 >/results/served.log 2>&1 &
    server=$!
    until_says "Waiting for visitors" /results/served.log
    "$ferry" scan $two --seconds 120 --service E07F0AE8-00BB-47F5-94F4-4A7174EA3032 --json >/results/scan.log 2>&1 &
    scan=$!
    until_says '"address"' /results/scan.log
    kill -INT $scan
    wait $scan
    check "a scan hears who offers the service" "E07F0AE8-00BB-47F5-94F4-4A7174EA3032" /results/scan.log
    address=$(sed -nE 's/.*"address":"([^"]*)".*/\1/p' /results/scan.log | head -n 1)

    "$ferry" inspect $two --timeout 60 "$address" >/results/inspect.log 2>&1
    check "it is looked at" "$value  write without response, write, notify" /results/inspect.log
    "$ferry" read $two --timeout 60 "$address" $value >/results/read.log 2>&1
    check "what cannot be read is said so" "The attribute.s value cannot be read" /results/read.log
    "$ferry" watch $two --timeout 60 "$address" $value --as text --count 1 >/results/watch.log 2>&1
    check "its values are watched" '"contact":"ada.love' /results/watch.log
    "$ferry" watch $two --timeout 60 "$address" $value >/results/left.log 2>&1 &
    watch=$!
    # With a value its subscription is whole. Killed before that, the server would take bluetoothd 5.66 with it: it uses what it has freed
    # when the answer to its AcquireNotify never comes.
    until_says '"contact' /results/left.log
    kill -KILL $server
    wait $watch
    # bluetoothd keeps the connection for itself.
    check "that it has gone is told" "has changed or withdrawn the watched characteristic" /results/left.log

    "$ferry" bench --serve $one >/results/bench-served.log 2>&1 &
    server=$!
    until_says "Waiting for" /results/bench-served.log
    "$ferry" bench --connect $two --seconds 0.5 --message-size 100,4096 >/results/bench.log 2>&1
    for what in write notify; do
        check "$what is measured" "^$what, messages of 4096 bytes: [1-9][0-9.]* kbit/s" /results/bench.log
    done

    "$ferry" scan $two --seconds 120 --json >/results/lost.log 2>&1 &
    scan=$!
    until_says '"address"' /results/lost.log
    kill_bluetoothd
    wait $scan
    check "bluetoothd's end is told to who scans" "Adapter bluez:hci1 is gone" /results/lost.log
    check "and to who serves" "bluez:hci0 has gone.*no central can connect" /results/bench-served.log
    restart_bluetoothd
    until_says "Listening again" /results/bench-served.log
    check "who goes on when it is back" "Listening again" /results/bench-served.log
    kill -INT $server
    wait $server
}
exit $failed
