// A controller of the guest's kernel whose other end is a port: /dev/vhci on one side, H4 on the other.
//
//     bridge /dev/vport1p1        # what QEMU connects to a socket of the host's (`run -c`)
//
// A virtual controller may hear an advertiser at the very moment in which a scan begins, and the kernel drops what comes
// before it has noted that its scan has begun. So the controller is asked to tell of advertisers again and again.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// H4 packet types (Core Specification 5.4, Vol 4, Part A, 2).
enum { COMMAND = 1, ACL = 2, EVENT = 4, ISO = 5, VENDOR = 0xff };
enum { SET_SCAN_ENABLE = 0x200c, SET_EXTENDED_SCAN_ENABLE = 0x2042 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void send_all(int to, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = write(to, bytes, count);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == ENXIO) return;  // the kernel's side of /dev/vhci is down: on real hardware nobody hears it, either
        if (sent <= 0) fail("bridge: write");
        bytes += sent;
        count -= sent;
    }
}

// How long the packet at the beginning of `bytes` is; 0 when too little is there to tell.
static size_t length(const uint8_t *bytes, size_t count) {
    if (count == 0) return 0;
    switch (bytes[0]) {
    case EVENT: return count < 3 ? 0 : 3 + bytes[2];
    case ACL: return count < 5 ? 0 : 5 + (bytes[3] | bytes[4] << 8);
    case ISO: return count < 5 ? 0 : 5 + ((bytes[3] | bytes[4] << 8) & 0x3fff);
    }
    fprintf(stderr, "bridge: the controller sent a packet of type %d\n", bytes[0]);
    exit(1);
}

int main(int count, char **arguments) {
    int port = count == 2 ? open(arguments[1], O_RDWR | O_CLOEXEC) : -1;
    if (port < 0) fail("bridge: the port");
    int host = open("/dev/vhci", O_RDWR | O_CLOEXEC);
    uint8_t make[] = {VENDOR, 0};
    if (host < 0 || write(host, make, sizeof make) < 0) fail("bridge: /dev/vhci");

    static uint8_t packet[65536], stream[1 << 17];
    size_t held = 0;
    for (;;) {
        struct pollfd sources[] = {{.fd = port, .events = POLLIN}, {.fd = host, .events = POLLIN}};
        if (poll(sources, 2, -1) < 0) continue;
        if (sources[1].revents) {
            ssize_t taken = read(host, packet, sizeof packet);
            if (taken >= 6 && packet[0] == COMMAND) {
                unsigned opcode = packet[1] | packet[2] << 8;
                if (opcode == SET_SCAN_ENABLE || opcode == SET_EXTENDED_SCAN_ENABLE) packet[5] = 0;  // no filter
            }
            if (taken > 0 && packet[0] != VENDOR) send_all(port, packet, taken);
        }
        if (sources[0].revents) {
            ssize_t taken = read(port, stream + held, sizeof stream - held);
            if (taken <= 0) fail("bridge: the controller has gone");
            held += taken;
            size_t begin = 0, next;
            while ((next = length(stream + begin, held - begin)) && begin + next <= held) {
                send_all(host, stream + begin, next);
                begin += next;
            }
            memmove(stream, stream + begin, held -= begin);
        }
    }
}
