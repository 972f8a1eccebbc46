#!/bin/bash
# For the guest: Ferry on bluetoothd, whose controller is one of the host's (`run -c`), against hosts that are outside. What
# scripts/interop across runs at the same time is the other half.
#
#     Tests/VirtualMachine/run -c 127.0.0.1:6402 Tests/VirtualMachine/across.sh .build-traits/debug
set -u
. /guest/root/bluez.sh
programs=$1
card=$programs/business-card
failed=0
start_bridge && start_bluetoothd 1 || exit 1
say "the controller outside is hci0"

"$card" serve --transport bluez:hci0 --timeout 120 >/results/guest-serves.log 2>&1 &
server=$!
wait_until 600 grep -q "Visitor 1 was sent the card" /results/guest-serves.log
check "a card has left" "Visitor 1 was sent the card" /results/guest-serves.log
kill -INT $server
wait $server
"$card" receive --transport bluez:hci0 --timeout 120 >/results/guest-receives.log 2>&1
check "a card has come" "Name            Ada Lovelace" /results/guest-receives.log

FERRY_ACROSS=guest FERRY_BLUEZ=bluez:hci0 "$programs/ferryPackageTests.xctest" --testing-library swift-testing \
    --filter '^MixedTransportTests\.AcrossTests' --xunit-output /results/interop-across-guest-swift-testing.xml || failed=1
exit $failed
