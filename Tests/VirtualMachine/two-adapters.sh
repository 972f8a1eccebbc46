#!/bin/bash
# For the guest: two LE controllers that hear each other, one bluetoothd for both; then the command in the arguments.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/two-adapters.sh bluetoothctl list
set -u
. /guest/root/bluez.sh
start_controllers 2 && start_bluetoothd 2 || exit 1
say "two adapters are ready"
"$@"
