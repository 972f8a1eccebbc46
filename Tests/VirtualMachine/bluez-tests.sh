#!/bin/bash
# For the guest: the tests of FerryBlueZ, each suite with the configuration of bluetoothd that it is for.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/bluez-tests.sh BUNDLE [FILTER]
set -u
. /guest/root/bluez.sh
bundle=$1 filter=${2:-^FerryBlueZTests\.}
status=0

# tests NAME OPTION...: their record is NAME's.
tests() {
    local name=$1
    shift
    "$bundle" --testing-library swift-testing --no-parallel --xunit-output "/results/$name-swift-testing.xml" "$@" || status=$?
}
# reconfigured SUITE ATT_MTU BEARERS: that suite, if it is chosen, with another configuration.
reconfigured() {
    [[ FerryBlueZTests.$1/ =~ $filter ]] || return 0
    kill_bluetoothd
    configure GATT ExchangeMTU "$2"
    configure GATT Channels "$3"
    restart_bluetoothd || exit 1
    say "$1: ATT_MTU $2, bearers: $3"
    tests "virtual-machine-$1" --filter "^FerryBlueZTests\.$1"
}

configure GATT ExchangeMTU 185
configure GATT Channels 1
# shellcheck disable=SC2086
start_controllers 2 && start_bluetoothd 2 ${BLUETOOTHD_OPTIONS:-} || exit 1
say "two adapters are ready"
tests virtual-machine --filter "$filter" --skip 'MessageTests|OrderTests'
reconfigured MessageTests 517 1
reconfigured OrderTests 517 3
exit $status
