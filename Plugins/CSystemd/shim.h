#include <stdint.h>
#include <systemd/sd-bus.h>

// The kernel's L2CAP socket address and options, as in <bluetooth/bluetooth.h> and <bluetooth/l2cap.h>: the kernel's
// interface, written down here because those headers are BlueZ's library, which is not needed otherwise.
struct ferry_sockaddr_l2 {
    uint16_t family;
    uint16_t psm;          // little-endian
    uint8_t address[6];    // least significant byte first
    uint16_t channel;      // little-endian
    uint8_t address_type;  // 1 public, 2 random
};

enum {
    FERRY_AF_BLUETOOTH = 31,
    FERRY_BTPROTO_L2CAP = 0,
    FERRY_SOL_BLUETOOTH = 274,
    FERRY_BT_SECURITY = 4,
    FERRY_BT_SNDMTU = 12,
    FERRY_BT_RCVMTU = 13,
};
