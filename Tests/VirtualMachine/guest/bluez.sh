# For scripts that run in the guest: `. /guest/root/bluez.sh`. BlueZ's own tools: `in_guest btmgmt info`.
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket
say() { echo "[guest $(cut -d' ' -f1 /proc/uptime)] $*"; }
in_guest() { chroot /guest "$@"; }
# Where programs outside of /guest look for it.
ln -sfn /guest/etc/bluetooth /etc/bluetooth

# check WHAT TEXT FILE: whether the file has the text; sets `failed` when it has not.
check() {
    if grep -q "$2" "$3"; then say "$1: yes"; else
        say "$1: NO"
        cat "$3"
        failed=1
    fi
}

# How many adapters org.bluez has.
adapters() {
    in_guest dbus-send --system --dest=org.bluez --print-reply / org.freedesktop.DBus.ObjectManager.GetManagedObjects \
        2>/dev/null | grep -o 'object path "/org/bluez/hci[0-9]*"' | sort -u | wc -l
}

# Whether bluetoothd has looked through the services of a device that is connected.
has_resolved() {
    in_guest dbus-send --system --dest=org.bluez --print-reply / org.freedesktop.DBus.ObjectManager.GetManagedObjects \
        2>/dev/null | grep -A 1 ServicesResolved | grep -q true
}

# start_controllers N: so many LE controllers on one virtual radio. The process of hci0 is in /run/controller0.pid, and so on:
# when it is killed the adapter is gone.
start_controllers() {
    local number
    (exec chroot /guest btvirt -s >/results/btvirt.log 2>&1) &
    echo $! >/run/btvirt.pid
    wait_until 300 test -S /guest/tmp/bt-server-le || {
        say "btvirt does not serve: $(cat /results/btvirt.log)"
        return 1
    }
    for number in $(seq 0 $(($1 - 1))); do start_controller "$number" || return 1; done
}

# start_controller NUMBER: the next one, which is hciNUMBER.
start_controller() {
    (exec chroot /guest controller >>/results/controllers.log 2>&1) &
    echo $! >"/run/controller$1.pid"
    wait_until 300 test -e "/sys/class/bluetooth/hci$1" || {
        say "there is no hci$1: $(cat /results/btvirt.log /results/controllers.log)"
        return 1
    }
}

# kill_controllers: the radio and all that is on it.
kill_controllers() {
    local file
    for file in /run/controller*.pid /run/btvirt.pid; do
        [ ! -f "$file" ] || end "$(basename "$file" .pid)"
        rm -f "$file"
    done
    rm -f /guest/tmp/bt-server-*
    wait_until 300 no_adapters
}
no_adapters() { [ -z "$(ls /sys/class/bluetooth)" ]; }

# start_bridge: hci0 is the controller that `run -c` has connected. It is gone when the process in /run/bridge.pid is killed.
start_bridge() {
    (exec chroot /guest bridge "/dev/$(ls /sys/class/virtio-ports)" >>/results/bridge.log 2>&1) &
    echo $! >/run/bridge.pid
    wait_until 300 test -e /sys/class/bluetooth/hci0 || {
        say "there is no hci0: $(cat /results/bridge.log)"
        return 1
    }
}

# wait_until TENTHS COMMAND...: until it succeeds; gives up after four times TENTHS of a second, for a busy host is that slow.
wait_until() {
    local tenths=$1
    shift
    for _ in $(seq $((4 * tenths))); do
        ! "$@" || return 0
        sleep 0.1
    done
    return 1
}

# until_says TEXT FILE: waits as long as wait_until 600 does; prints a text that the file never has, and what it has instead.
until_says() {
    wait_until 600 grep -q "$1" "$2" 2>/dev/null && return
    say "$2 does not say \"$1\":"
    cat "$2"
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
    echo "$count $*" >/run/bluetoothd.options
    (exec chroot /guest bluetoothd -n "$@" >>/results/bluetoothd.log 2>&1) &
    echo $! >/run/bluetoothd.pid
    wait_until 600 serves "$count" || {
        say "bluetoothd serves $(adapters) of $count adapters: $(tail -n 3 /results/bluetoothd.log)"
        return 1
    }
}
serves() { [ "$(adapters)" -ge "$1" ]; }

# end NAME [SIGNAL]: kills the process in /run/NAME.pid, and waits until it is gone.
end() {
    local process
    process=$(cat "/run/$1.pid")
    kill "-${2:-KILL}" "$process"
    wait_until 300 has_ended "$process"
}
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"; }

# kill_controller NUMBER, kill_bluetoothd, kill_bus; and the same started again as they were.
kill_controller() { end "controller$1" TERM; }
kill_bluetoothd() { end bluetoothd; }
# shellcheck disable=SC2046
restart_bluetoothd() { start_bluetoothd $(cat /run/bluetoothd.options); }
kill_bus() { end dbus; }
start_bus() {
    rm -f /run/dbus/system_bus_socket
    (exec chroot /guest dbus-daemon --config-file=/etc/dbus-1/system.conf --nofork --nopidfile) &
    echo $! >/run/dbus.pid
    wait_until 300 test -S /run/dbus/system_bus_socket
}
