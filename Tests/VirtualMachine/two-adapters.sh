#!/bin/bash
# For the guest: two LE controllers that hear each other, one bluetoothd for both; then the command in the arguments.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/two-adapters.sh bluetoothctl list
# In the environment: ATT_MTU, the largest that bluetoothd agrees to (517); BEARERS, how many ATT bearers it uses (1);
# BLUETOOTHD_OPTIONS, such as -d for all that it has to say.
set -u
. /guest/root/bluez.sh
configure GATT ExchangeMTU "${ATT_MTU:-517}"
configure GATT Channels "${BEARERS:-1}"
start_controllers 2 && start_bluetoothd 2 ${BLUETOOTHD_OPTIONS:-} || exit 1
say "two adapters are ready"
"$@"
