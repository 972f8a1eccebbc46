#!/bin/bash
# For the guest: two LE controllers of the kernel's that hear each other, and Ferry's own host on one of them by the user
# channel and on the other.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/user-channel.sh .build-traits/debug/business-card .build-traits/debug/ferry
set -u
. /guest/root/bluez.sh
card=$1 ferry=$2
start_controllers 2 || exit 1
failed=0

"$ferry" capture --transport hci:monitor /results/monitor.btsnoop >/results/monitor.log 2>&1 &
monitor=$!
"$ferry" capture --transport hci:monitor:0 /results/monitor-0.btsnoop >/results/monitor-0.log 2>&1 &
monitor_0=$!
for _ in $(seq 100); do
    grep -q recording /results/monitor.log && grep -q recording /results/monitor-0.log && break
    sleep 0.2
done
"$card" serve --transport hci:user:0 --timeout 120 --capture /results/server.btsnoop >/results/serve.log 2>&1 &
server=$!
"$card" receive --transport hci:user:1 --timeout 120 >/results/receive.log 2>&1
check "a card crosses between two user channels" "Name            Ada Lovelace" /results/receive.log
wait_until 300 grep -q "Visitor 1 was sent the card" /results/serve.log
kill -INT $server
wait $server
kill -INT $monitor $monitor_0
wait $monitor $monitor_0
check "the monitor has recorded both adapters" "packets: .* of hci0, .* of hci1" /results/monitor.log
check "one monitor has recorded one adapter" "packets: [0-9]* of hci0$" /results/monitor-0.log
in_guest btmon -r /results/monitor.btsnoop >/results/btmon.log 2>&1 </dev/null
check "btmon reads the capture" "LE Create Connection\|LE Extended Create Connection" /results/btmon.log
check "the server has handed it over" "Visitor 1 was sent the card" /results/serve.log

# A program that is killed leaves its controller scanning, and the kernel's side of it down: no program takes its reports then.
# It scans for longer than the server may take to begin.
"$card" serve --transport hci:user:0 --timeout 240 >/results/stays.log 2>&1 &
server=$!
"$ferry" scan --transport hci:user:1 --seconds 600 --json >/results/scan.log 2>&1 &
scanner=$!
wait_until 300 grep -q address /results/scan.log
kill -KILL $scanner
wait $scanner
sleep 0.5 # five reports
"$card" receive --transport hci:user:1 --timeout 120 >/results/again.log 2>&1
check "the adapter of whoever was killed can be taken again" "Name            Ada Lovelace" /results/again.log
kill -INT $server
wait $server

"$card" receive --transport hci:user:7 --timeout 5 >/results/none.log 2>&1
check "an adapter that is not there is said so" "There is no adapter hci7" /results/none.log
in_guest btmgmt --index 1 power on >/dev/null 2>&1 </dev/null
"$card" receive --transport hci:user:1 --timeout 5 >/results/busy.log 2>&1
check "an adapter that is up is said so" "hci1 is up, or another program has it" /results/busy.log
exit $failed
