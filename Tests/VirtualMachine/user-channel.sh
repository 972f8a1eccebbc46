#!/bin/bash
# For the guest: two LE controllers of the kernel's that hear each other, and Ferry's own host on one of them by the user
# channel and on the other.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/user-channel.sh .build-hci/debug/business-card
set -u
. /guest/root/bluez.sh
card=$1
start_controllers 2 || exit 1
failed=0
check() { # what text file
    if grep -q "$2" "$3"; then say "$1: yes"; else
        say "$1: NO"
        cat "$3"
        failed=1
    fi
}

"$card" serve --transport hci:user:0 --timeout 20 --capture /results/server.btsnoop >/results/serve.log 2>&1 &
server=$!
"$card" receive --transport hci:user:1 --timeout 20 >/results/receive.log 2>&1
check "a card crosses between two user channels" "Name            Ada Lovelace" /results/receive.log
wait $server
check "the server has handed it over" "1 visitor served, 0 failed" /results/serve.log

"$card" receive --transport hci:user:7 --timeout 5 >/results/none.log 2>&1
check "an adapter that is not there is said so" "There is no adapter hci7" /results/none.log
in_guest btmgmt --index 1 power on >/dev/null 2>&1 </dev/null
"$card" receive --transport hci:user:1 --timeout 5 >/results/busy.log 2>&1
check "an adapter that is up is said so" "hci1 is up, or another program has it" /results/busy.log
exit $failed
