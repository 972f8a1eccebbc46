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
    FERRY_BTPROTO_HCI = 1,
    FERRY_HCI_CHANNEL_CONTROL = 3,
};

// The value of BT_SECURITY.
struct ferry_bt_security {
    uint8_t level;  // 1 low, 2 medium: encrypted
    uint8_t key_size;
};

// The address of the kernel's management socket, as in <bluetooth/hci.h>.
struct ferry_sockaddr_hci {
    uint16_t family;
    uint16_t device;
    uint16_t channel;
};
