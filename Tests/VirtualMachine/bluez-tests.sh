#!/bin/bash
# For the guest: the tests of FerryBlueZ, each suite with the configuration of bluetoothd that it is for.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/bluez-tests.sh BUNDLE [FILTER]
set -u
. /guest/root/bluez.sh
bundle=$1 filter=${2:-^FerryBlueZTests\.}
status=0 ran=0

# tests NAME OPTION...: their record is NAME's.
tests() {
    local name=$1
    shift
    "${as_user[@]}" "$bundle" --testing-library swift-testing --no-parallel --xunit-output "/tmp/$name-swift-testing.xml" \
        "$@"
    ended=$?
    # 69 says that the filter chose nothing there.
    if [ $ended != 69 ]; then
        ran=1
        [ $ended = 0 ] || status=$ended
    fi
    cp "/tmp/$name-swift-testing.xml" /results/
}
as_user=()
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
tests virtual-machine --filter "$filter" --skip 'MessageTests|SpeedTests|OrderTests|PermissionTests'
reconfigured MessageTests 517 1
reconfigured SpeedTests 517 1
reconfigured OrderTests 517 3

# As somebody who is not root. Debian's policy lets everybody talk to bluetoothd; others only root and the group bluetooth.
if [[ FerryBlueZTests.PermissionTests/ =~ $filter ]]; then
    sed -i '/context="default"/,/<.policy>/ s/<allow /<deny /' /guest/etc/dbus-1/system.d/bluetooth.conf
    in_guest dbus-send --system --dest=org.freedesktop.DBus --print-reply / org.freedesktop.DBus.ReloadConfig >/dev/null
    for groups in 1000 112; do
        # The one capability is for the bundle, which may be in a folder that is root's alone.
        as_user=(setpriv --reuid 1000 --regid 1000 --groups "$groups" --inh-caps -all,+dac_read_search
            --ambient-caps -all,+dac_read_search)
        say "PermissionTests: a user of the group $groups"
        tests "virtual-machine-PermissionTests-$groups" --filter '^FerryBlueZTests\.PermissionTests'
    done
fi
[ $ran = 1 ] || { say "no test of FerryBlueZ is called $filter" && exit 69; }
exit $status
