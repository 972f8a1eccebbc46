#!/bin/bash
# For the guest: Ferry's own host on hci0, by the user channel, against the kernel's host and bluetoothd, which have hci1.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/two-hosts.sh .build-traits/debug [FILTER]
#     Tests/VirtualMachine/run Tests/VirtualMachine/two-hosts.sh .build-traits/debug --cards    # business cards alone
set -u
. /guest/root/bluez.sh
programs=$1 filter=${2:-^MixedTransportTests\.MixedTests}
card=$programs/business-card
failed=0
# receive NAME TRANSPORT, serve NAME TRANSPORT: one side of an exchange; what it says is in /results/NAME.log.
receive() { "$card" receive --transport "$2" --timeout 120 $(capture "$@") >"/results/$1.log" 2>&1; }
serve() { exec "$card" serve --transport "$2" --timeout 120 $(capture "$@") >"/results/$1.log" 2>&1; }
capture() { [[ $2 != hci:* ]] || echo "--capture /results/$1.btsnoop"; }
# cross SERVER CLIENT: a card goes from one process to another.
cross() {
    local name=${1//:/-}-to-${2//:/-} server
    serve "$name-server" "$1" &
    server=$!
    receive "$name-client" "$2"
    check "a card crosses from $1 to $2" "Name            Ada Lovelace" "/results/$name-client.log"
    wait_until 300 grep -q "Visitor 1 was sent the card" "/results/$name-server.log"
    check "the server knows that it did" "Visitor 1 was sent the card" "/results/$name-server.log"
    kill -INT $server
    wait $server
}

configure Policy AutoEnable false # or bluetoothd would switch hci0 on whenever it comes back from the user channel
start_controllers 2 && start_bluetoothd 2 || exit 1
"$programs/ferry" capture --transport hci:monitor /results/monitor.btsnoop >/results/monitor.log 2>&1 &
monitor=$!
wait_until 300 grep -q recording /results/monitor.log
in_guest btmgmt --index 1 power on >/dev/null 2>&1 </dev/null
cross hci:user:0 bluez:hci1
cross bluez:hci1 hci:user:0
[ "$filter" != --cards ] || exit $failed

"$programs/ferryPackageTests.xctest" --testing-library swift-testing --filter "$filter" \
    --xunit-output /results/interop-mixed-swift-testing.xml || failed=1
kill -INT $monitor
wait $monitor
exit $failed
