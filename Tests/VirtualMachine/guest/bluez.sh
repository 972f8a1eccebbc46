# For scripts that run in the guest: `. /guest/root/bluez.sh`. BlueZ's own tools: `in_guest btmgmt info`.
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket
say() { echo "[guest $(cut -d' ' -f1 /proc/uptime)] $*"; }
in_guest() { chroot /guest "$@"; }

# How many adapters org.bluez has.
adapters() {
    in_guest dbus-send --system --dest=org.bluez --print-reply / org.freedesktop.DBus.ObjectManager.GetManagedObjects \
        2>/dev/null | grep -o 'object path "/org/bluez/hci[0-9]*"' | sort -u | wc -l
}

# start_controllers N: so many LE controllers on one virtual radio. The process of hci0 is in /run/controller0.pid, and so on:
# when it is killed the adapter is gone.
start_controllers() {
    local number
    in_guest btvirt -s >/results/btvirt.log 2>&1 &
    wait_until 50 test -S /guest/tmp/bt-server-le || {
        say "btvirt does not serve: $(cat /results/btvirt.log)"
        return 1
    }
    for number in $(seq 0 $(($1 - 1))); do start_controller "$number" || return 1; done
}

# start_controller NUMBER: the next one, which is hciNUMBER.
start_controller() {
    in_guest controller >>/results/controllers.log 2>&1 &
    echo $! >"/run/controller$1.pid"
    wait_until 50 test -e "/sys/class/bluetooth/hci$1" || {
        say "there is no hci$1: $(cat /results/btvirt.log /results/controllers.log)"
        return 1
    }
}

# wait_until TENTHS COMMAND...: until it succeeds, for so many tenths of a second.
wait_until() {
    local tenths=$1
    shift
    for _ in $(seq "$tenths"); do
        ! "$@" || return 0
        sleep 0.1
    done
    return 1
}

# configure SECTION KEY VALUE: changes /etc/bluetooth/main.conf of the guest, before start_bluetoothd.
configure() {
    local file=/guest/etc/bluetooth/main.conf
    sed -i "/^$2 *=/d; s/^\[$1\]\$/&\n$2 = $3/" "$file"
}

# start_bluetoothd N [OPTION...]: the daemon, and waits until it serves so many adapters.
start_bluetoothd() {
    local count=$1
    shift
    in_guest bluetoothd -n "$@" >>/results/bluetoothd.log 2>&1 &
    echo $! >/run/bluetoothd.pid
    for _ in $(seq 100); do
        [ "$(adapters)" -lt "$count" ] || return 0
        sleep 0.1
    done
    say "bluetoothd serves $(adapters) of $count adapters: $(tail -n 3 /results/bluetoothd.log)"
    return 1
}
