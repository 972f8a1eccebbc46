// One Bluetooth LE controller of the guest's kernel: /dev/vhci on one side, one of btvirt's controllers on the other.
//
//     btvirt -s & controller &        # SIGTERM ends it: its adapter is gone, and peers lose it by timeout
//
// btvirt tells of an advertiser once, at the very moment in which a scan begins, and the kernel drops what comes before it
// has noted that its scan has begun. Advertisers on the air repeat themselves. So here a scan is switched off and on every
// 100 ms, unseen by the kernel, which makes btvirt tell of all advertisers again. What btvirt tells in the first 50 ms of a
// scan is not passed on: no advertiser is heard that soon, and it must not matter. Signal strengths, of which btvirt
// knows none, swing between -52 and -64 dBm. Data buffers are what controllers have, not one of 192 bytes.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// H4 packet types, opcodes and events (Core Specification 5.4, Vol 4, Part A and Part E, 7).
enum { COMMAND = 1, ACL = 2, EVENT = 4, VENDOR = 0xff };
enum { DISCONNECT = 0x0406, RESET = 0x0c03, READ_RSSI = 0x1405, READ_ADDRESS = 0x1009, READ_BUFFER_SIZE = 0x2002, SET_SCAN_ENABLE = 0x200c };
enum { SET_ADVERTISE_ENABLE = 0x200a };
enum { DISCONNECTED = 0x05, COMMAND_COMPLETE = 0x0e, LE_META = 0x3e };
enum { PERIPHERAL = 0x01 };
enum { CONNECTED = 0x01, ADVERTISING_REPORT = 0x02, CONNECTION_TIMEOUT = 0x08 };
enum { REPEAT = 100, DEAF = 50 };  // ms
enum { BUFFER_SIZE = 251, BUFFERS = 8 };

static int host, air;
static uint8_t scan[2];  // enabled, filters duplicates
static int64_t scan_began, repeated;
// Which of the commands to scan, and to advertise, that btvirt has not answered yet are not the kernel's, oldest first.
struct asked {
    uint8_t is_ours[64];
    unsigned asked, answered;
};
static struct asked scans, advertisements;
static struct {
    uint16_t handle;
    uint8_t peer;
} connections[16];
static unsigned connected;
// Of the addresses that btvirt gives, the byte in which they differ.
static uint8_t own;
static volatile sig_atomic_t leaves;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void send_all(int to, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = write(to, bytes, count);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == ENXIO) return;  // the kernel's side of /dev/vhci is down: on real hardware nobody hears it, either
        if (sent <= 0) fail("controller: write");
        bytes += sent;
        count -= sent;
    }
}

static void did_ask(struct asked *which, int ours) { which->is_ours[which->asked++ % sizeof which->is_ours] = ours; }

static int answers_us(struct asked *which) {
    return which->asked != which->answered && which->is_ours[which->answered++ % sizeof which->is_ours];
}

// A connection ends a peripheral's advertising, as the kernel knows, and btvirt does not.
static void stop_advertising(void) {
    uint8_t command[] = {COMMAND, SET_ADVERTISE_ENABLE & 0xff, SET_ADVERTISE_ENABLE >> 8, 1, 0};
    did_ask(&advertisements, 1);
    send_all(air, command, sizeof command);
}

static void set_scan(uint8_t enabled, int ours) {
    uint8_t command[] = {COMMAND, SET_SCAN_ENABLE & 0xff, SET_SCAN_ENABLE >> 8, 2, enabled, scan[1]};
    did_ask(&scans, ours);
    send_all(air, command, sizeof command);
}

static void did_connect(uint16_t handle, uint8_t peer) {
    if (connected == sizeof connections / sizeof *connections) return;
    connections[connected].handle = handle;
    connections[connected++].peer = peer;
}

// btvirt counts a controller's connections from here on, but tells a peripheral the number that the central's side has.
static uint16_t peripheral_handle(void) {
    uint16_t handle = 42;
    for (unsigned place = 0; place < connected;) {
        if (connections[place++].handle != handle) continue;
        handle++;
        place = 0;
    }
    return handle;
}

static void did_disconnect(uint16_t handle) {
    for (unsigned place = 0; place < connected; place++)
        if (connections[place].handle == handle) connections[place--] = connections[--connected];
}

static void disconnect_all(void) {
    for (unsigned place = 0; place < connected; place++) {
        uint16_t handle = connections[place].handle;
        uint8_t command[] = {COMMAND, DISCONNECT & 0xff, DISCONNECT >> 8, 3, handle, handle >> 8, CONNECTION_TIMEOUT};
        send_all(air, command, sizeof command);
    }
}

static void leave(int signal) { leaves = signal; }

// btvirt passes data on with the sender's number of the connection, whichever the receiver's is. So the sender's address goes
// with them, behind the last byte.
static size_t sign(uint8_t *packet, size_t count) {
    unsigned length = (packet[3] | packet[4] << 8) + 1;
    packet[3] = length;
    packet[4] = length >> 8;
    packet[count] = own;
    return count + 1;
}

static size_t unsign(uint8_t *packet, size_t count) {
    unsigned length = (packet[3] | packet[4] << 8) - 1;
    packet[3] = length;
    packet[4] = length >> 8;
    for (unsigned place = 0; place < connected; place++) {
        if (connections[place].peer != packet[count - 1]) continue;
        packet[1] = connections[place].handle;
        packet[2] = (packet[2] & 0xf0) | connections[place].handle >> 8;
    }
    return count - 1;
}

// A packet from the kernel.
static void from_host(uint8_t *packet, size_t count) {
    unsigned opcode = count >= 4 && packet[0] == COMMAND ? packet[1] | packet[2] << 8 : 0;
    if (packet[0] == VENDOR) return;
    if (opcode == RESET) scan[0] = 0;
    if (opcode == SET_SCAN_ENABLE && count >= 6) {
        if (packet[4] && !scan[0]) scan_began = repeated = now();
        memcpy(scan, packet + 4, 2);
        did_ask(&scans, 0);
    }
    if (opcode == SET_ADVERTISE_ENABLE) did_ask(&advertisements, 0);
    if (packet[0] == ACL && count >= 5) count = sign(packet, count);
    send_all(air, packet, count);
}

// A packet from btvirt.
static void from_air(uint8_t *packet, size_t count) {
    if (packet[0] == EVENT && packet[1] == COMMAND_COMPLETE && count >= 7) {
        unsigned opcode = packet[4] | packet[5] << 8;
        if (opcode == SET_SCAN_ENABLE && answers_us(&scans)) return;
        if (opcode == SET_ADVERTISE_ENABLE && answers_us(&advertisements)) return;
        if (opcode == READ_ADDRESS && count >= 13) own = packet[9];
        if (opcode == READ_RSSI && count >= 10) packet[9] = (uint8_t)-52;
        if (opcode == READ_BUFFER_SIZE && count >= 10) {
            packet[7] = BUFFER_SIZE;
            packet[8] = 0;
            packet[9] = BUFFERS;
        }
    }
    if (packet[0] == EVENT && packet[1] == DISCONNECTED && count >= 7) did_disconnect(packet[4] | packet[5] << 8);
    if (packet[0] == EVENT && packet[1] == LE_META && count >= 7 && packet[3] == CONNECTED && packet[4] == 0) {
        if (packet[7] == PERIPHERAL) {
            packet[5] = peripheral_handle();
            packet[6] = 0;
            stop_advertising();
        }
        did_connect(packet[5] | packet[6] << 8, packet[11]);
    }
    if (packet[0] == EVENT && packet[1] == LE_META && count > 5 && packet[3] == ADVERTISING_REPORT) {
        if (!scan[0] || now() - scan_began < DEAF) return;
        packet[count - 1] = (uint8_t)(now() / 1000 % 2 ? -52 : -64);
    }
    if (packet[0] == ACL && count > 5) count = unsign(packet, count);
    send_all(host, packet, count);
}

// How long the packet at the beginning of `bytes` is; 0 when too little is there to tell.
static size_t length(const uint8_t *bytes, size_t count) {
    if (count >= 3 && bytes[0] == EVENT) return 3 + bytes[2];
    if (count >= 5 && bytes[0] == ACL) return 5 + (bytes[3] | bytes[4] << 8);
    if (count > 0 && bytes[0] != EVENT && bytes[0] != ACL) {
        fprintf(stderr, "controller: btvirt sent a packet of type %d\n", bytes[0]);
        exit(1);
    }
    return 0;
}

int main(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/bt-server-le"};
    air = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (air < 0 || connect(air, (struct sockaddr *)&address, sizeof address) < 0) fail("controller: btvirt's socket");
    host = open("/dev/vhci", O_RDWR | O_CLOEXEC);
    uint8_t make[] = {VENDOR, 0};
    if (host < 0 || write(host, make, sizeof make) < 0) fail("controller: /dev/vhci");

    signal(SIGTERM, leave);
    static uint8_t packet[65536 + 1], stream[65536];
    size_t held = 0;
    int64_t left = 0;
    for (;;) {
        if (leaves && !left) {
            left = now();
            disconnect_all();
        }
        if (left && (!connected || now() - left > 1000)) return 0;
        struct pollfd sources[] = {{.fd = air, .events = POLLIN}, {.fd = host, .events = POLLIN}};
        if (poll(sources, 2, scan[0] || left ? REPEAT / 2 : 1000) < 0) continue;
        if (sources[0].revents) {
            ssize_t count = read(air, stream + held, sizeof stream - held);
            if (count <= 0) fail("controller: btvirt has gone");
            held += count;
            size_t begin = 0, next;
            while ((next = length(stream + begin, held - begin)) && begin + next <= held) {
                from_air(stream + begin, next);
                begin += next;
            }
            memmove(stream, stream + begin, held -= begin);
        }
        if (sources[1].revents) {
            ssize_t count = read(host, packet, sizeof packet - 1);
            if (count > 0) from_host(packet, count);
        }
        if (scan[0] && now() - repeated >= REPEAT) {
            repeated = now();
            set_scan(0, 1);
            set_scan(1, 1);
        }
    }
}
