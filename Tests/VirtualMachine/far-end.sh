#!/bin/bash
# For the guest: the other end in Python and in a browser, against a business-card on a real bluetoothd.
#
#     Tests/VirtualMachine/run Tests/VirtualMachine/far-end.sh .build-traits/debug/business-card .build-firmware PYTHON
#
# Chromium takes the first adapter, so the card is on the second.
set -u
. /guest/root/bluez.sh
card=$1 built=$2 python=$3
failed=0
start_controllers 2 && start_bluetoothd 2 || exit 1
export HOME=/tmp XDG_RUNTIME_DIR=/tmp

# serve FRAMING: a business-card that waits for visitors.
serve() {
    "$card" serve --transport bluez:hci1 --timeout 900 --save /results/theirs.json --framing "$1" >/results/served.log 2>&1 &
    until_says "Waiting for visitors" /results/served.log
}

for framing in sequenced eom; do
    serve $framing
    PYTHONPATH=$built/python "$python" Examples/PythonCard/card.py --adapter hci0 --timeout 120 --framing $framing \
        >/results/python-$framing.log 2>&1
    check "bleak has the card ($framing)" "lastName  *Lovelace" /results/python-$framing.log
    until_says Grace /results/theirs.json
    check "and its own arrived" Grace /results/theirs.json
    rm -f /results/theirs.json
    if [ $framing = sequenced ]; then
        kill $!
        wait $!
    fi
done

FERRY_PATIENCE=12 node Examples/WebCard/Tests/bluez.js "$built/javascript" /results/pictures >/results/browser.log 2>&1
check "the page has the card, by notifications" "the page has a card: Ada Lovelace" /results/browser.log
until_says Grace /results/theirs.json
check "and its own arrived" Grace /results/theirs.json
cat /results/python-*.log /results/browser.log
exit $failed
