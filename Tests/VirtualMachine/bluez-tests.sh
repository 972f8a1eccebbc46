#!/bin/bash
# For the guest: the tests of FerryBlueZ, each suite in a process of its own, with controllers and a bluetoothd of its own, so
# that what one does wrong the others do not find.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/bluez-tests.sh BUNDLE [FILTER]
set -u
. /guest/root/bluez.sh
bundle=$1 filter=${2:-^FerryBlueZTests\.}
suites=(Kit Channel Refusal Recovery Pairing Message Order Centrals Diary Speed Throughput Permission)

# What a filter of single tests has behind the suite's name is for the tests, not for the choice of suites.
chosen=()
for suite in "${suites[@]}"; do
    [[ FerryBlueZTests.${suite}Tests/ =~ ${filter%%/*} ]] && chosen+=("$suite")
done
[ ${#chosen[@]} -gt 0 ] || { say "no suite of FerryBlueZ is called $filter" && exit 69; }

# begin ADAPTERS ATT_MTU BEARERS: everything anew.
begin() {
    [ ! -f /run/bluetoothd.pid ] || kill_bluetoothd
    kill_controllers
    configure GATT ExchangeMTU "$2"
    configure GATT Channels "$3"
    # shellcheck disable=SC2086
    start_controllers "$1" && start_bluetoothd "$1" ${BLUETOOTHD_OPTIONS:-}
}

# tests SUITE [NAME]: the suite's record has its own name unless another is given.
as_user=()
tests() {
    local record=${2:-$1}-swift-testing.xml only=^FerryBlueZTests\\.$1Tests status
    [[ $filter != */* ]] || only=$filter
    say "$record"
    "${as_user[@]}" "$bundle" --testing-library swift-testing --no-parallel --xunit-output "/tmp/$record" --filter "$only"
    status=$?
    cp "/tmp/$record" /results/
    return $status
}

# As somebody who is not root. Debian's policy lets everybody talk to bluetoothd; others only root and the group bluetooth.
permissions() {
    local status=0
    sed -i '/context="default"/,/<.policy>/ s/<allow /<deny /' /guest/etc/dbus-1/system.d/bluetooth.conf
    in_guest dbus-send --system --dest=org.freedesktop.DBus --print-reply / org.freedesktop.DBus.ReloadConfig >/dev/null
    for groups in 1000 112; do
        # The one capability is for the bundle, which may be in a folder that is root's alone.
        as_user=(setpriv --reuid 1000 --regid 1000 --groups "$groups" --inh-caps -all,+dac_read_search
            --ambient-caps -all,+dac_read_search)
        tests Permission "Permission-$groups" || status=1
    done
    return $status
}

run() {
    case $1 in
        Message) begin 2 517 1 && tests "$1" ;;
        # One pool of memory: each thread that comes to allocate would begin another, which looks like a leak.
        Speed) begin 2 517 1 && MALLOC_ARENA_MAX=1 tests "$1" ;;
        Order) begin 2 517 3 && tests "$1" ;;
        Centrals) begin 3 185 1 && tests "$1" ;;
        Permission) begin 2 185 1 && permissions ;;
        *) begin 2 185 1 && tests "$1" ;;
    esac
}
status=0
for suite in "${chosen[@]}"; do
    run "$suite" || {
        say "$suite: FAILED"
        status=1
    }
done
exit $status
