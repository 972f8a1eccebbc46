# For scripts that run in the guest: `. /guest/root/bluez.sh`. BlueZ's own tools: `in_guest btmgmt info`.
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket
say() { echo "[guest $(cut -d' ' -f1 /proc/uptime)] $*"; }
in_guest() { chroot /guest "$@"; }

# How many adapters org.bluez has.
adapters() {
    in_guest dbus-send --system --dest=org.bluez --print-reply / org.freedesktop.DBus.ObjectManager.GetManagedObjects \
        2>/dev/null | grep -o 'object path "/org/bluez/hci[0-9]*"' | sort -u | wc -l
}

# start_controllers N: so many LE controllers on one virtual radio.
start_controllers() {
    in_guest btvirt -L -l"$1" >/results/btvirt.log 2>&1 &
    for _ in $(seq 50); do
        [ "$(ls /sys/class/bluetooth 2>/dev/null | wc -l)" -lt "$1" ] || return 0
        sleep 0.1
    done
    say "btvirt made no $1 controllers: $(cat /results/btvirt.log)"
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
