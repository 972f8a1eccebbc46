// A sensor that exchanges business cards and ships its readings: to `business-card receive`, and to `ferry receive --connect`.
//
// A radio module stands at the serial line. pipe.py plays it; the packets are in README.md. The module says which service a peer
// has connected to, and the session's framing follows from that. All memory of a session is in `arena`.

#include "board.h"
#include "ferry.h"
#include "memory.h"

#include <string.h>

enum { ARENA_BYTES = 48 << 10, MESSAGE_BYTES = 1024, CHUNK_BYTES = 512, DATA_BYTES = 512, LOG_BYTES = 24 << 10 };
enum { PACKET_OPENED = 1, PACKET_CLOSED, PACKET_CHUNK, PACKET_TAKEN, PACKET_STARTED, PACKET_CLOSE };
enum { SERVICE_CARD = 1, SERVICE_READINGS = 2 };
enum { FRAMING_EOM, FRAMING_LENGTH, FRAMING_SEQUENCED };
// How many chunks the module holds for the radio.
enum { MODULE_CHUNKS = 4 };
// Messages of a transfer: Documentation/Formats.md, "Transfers".
enum {
    TRANSFER_HELLO = 0x01, TRANSFER_ITEM = 0x02, TRANSFER_DATA = 0x03, TRANSFER_END = 0x04, TRANSFER_GOODBYE = 0x05,
    TRANSFER_GO = 0x06, TRANSFER_GIVE_UP = 0x07, TRANSFER_WELCOME = 0x11, TRANSFER_HAVE = 0x12, TRANSFER_DONE = 0x13,
    TRANSFER_REFUSED = 0x14, TRANSFER_PROVE = 0x15
};

static const char card[] =
    "{\"firstName\":\"Field\",\"lastName\":\"Sensor\",\"organization\":\"Society for the Promotion of the Analytical Engine\","
    "\"location\":\"On the roof of the observatory, beside the rain gauge and the anemometer, at the end of the ladder\",\"contact\":\"sensor@analytical-engine.example\"}";
static const char readings_name[] = "readings.csv";

// What must outlive a reset. On a board of your own this is flash or FRAM; the boards here keep their memory through a reset.
static KEPT_THROUGH_RESET struct {
    uint32_t mark;
    uint32_t starts;
    uint32_t log_count;
    uint32_t log_checksum;
    uint8_t log[LOG_BYTES];
} kept;
enum { MARK = 0x5e4504 };

static uint8_t arena[ARENA_BYTES];
static ferry_session *session;
static int service;
static uint8_t link_number;
static size_t chunk_bytes;
static int chunks_in_module;

// Where a transfer stands.
static enum { TRANSFER_NONE, GREETING, NAMING, SENDING, ENDING, LEAVING } transfer;
static size_t sent_bytes;
// Messages that the session has taken and not yet sent. Sequenced messages pass one another, and a transfer's must keep their order.
static int unsent;
static int framing;

_Noreturn void memory_is_full(size_t bytes) {
    (void)bytes;
    board_print("sensor: the arena is full; make ARENA_BYTES larger or the limits smaller\n");
    board_exit(5);
}

static void print(const char *text, const uint8_t *bytes, size_t count) {
    static char line[MESSAGE_BYTES + 1];
    if (count > MESSAGE_BYTES) { count = MESSAGE_BYTES; }
    memcpy(line, bytes, count);
    line[count] = 0;
    board_print(text);
    board_print(line);
    board_print("\n");
}

// CRC-32C (RFC 3720, B.4).
static uint32_t checksum(const uint8_t *bytes, size_t count) {
    uint32_t value = UINT32_MAX;
    for (; count > 0; count--) {
        value ^= *bytes++;
        for (int bit = 0; bit < 8; bit++) { value = value >> 1 ^ (0x82f63b78u & -(value & 1)); }
    }
    return ~value;
}

// Takes readings until the log is full: a line each, "NUMBER,HUNDREDTHS OF A DEGREE".
static void take_readings(void) {
    for (uint32_t number = 0;; number++) {
        char line[16], *place = line + sizeof line;
        uint32_t values[2] = {2000 + number * number % 701, number};
        *--place = '\n';
        for (int at = 0; at < 2; at++) {
            uint32_t rest = values[at];
            do { *--place = (char)('0' + rest % 10); } while ((rest /= 10) > 0);
            if (at == 0) { *--place = ','; }
        }
        size_t count = (size_t)(line + sizeof line - place);
        if (kept.log_count + count > LOG_BYTES) { break; }
        memcpy(kept.log + kept.log_count, place, count);
        kept.log_count += count;
    }
    kept.log_checksum = checksum(kept.log, kept.log_count);
}

// The packet that both ends send after a reset of the board. What comes before it is the rest of what was under way.
static const uint8_t started[] = {PACKET_STARTED, 0, 5, 'F', 'e', 'r', 'r', 'y'};

static void send_packet(uint8_t type, const void *bytes, size_t count) {
    uint8_t head[4] = {type, (uint8_t)((count + 1) >> 8), (uint8_t)(count + 1), link_number};
    board_serial_write(head, sizeof head);
    board_serial_write(bytes, count);
}

static void end_session(void) {
    ferry_destroy(session);
    session = NULL;
    transfer = TRANSFER_NONE;
}

// Ends the link for an error of the session.
static void fail(const char *doing, int32_t status) {
    char number[5] = {'-', (char)('0' + -status / 10 % 10), (char)('0' + -status % 10), 0};
    board_print("sensor: ");
    board_print(doing);
    board_print(" returned ");
    board_print(number);
    board_print("\n");
    send_packet(PACKET_CLOSE, NULL, 0);
    end_session();
}

static size_t put_varint(uint8_t *place, uint64_t value) {
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) { place[count++] = (uint8_t)(value | 0x80); }
    place[count++] = (uint8_t)value;
    return count;
}

// Returns the bytes that it has; 0 when it is cut short or too large.
static size_t take_varint(const uint8_t *bytes, size_t count, uint64_t *value) {
    *value = 0;
    for (size_t at = 0; at < count && at < 9; at++) {
        *value |= (uint64_t)(bytes[at] & 0x7f) << (7 * at);
        if (bytes[at] < 0x80) { return at + 1; }
    }
    return 0;
}

static void send_message(const uint8_t *bytes, size_t count) {
    int32_t status = ferry_enqueue(session, bytes, count, NULL, board_now());
    if (status != FERRY_OK) { return fail("ferry_enqueue", status); }
    unsent++;
}

// Length and checksum of the first `count` bytes of the log. Returns whether the session has taken them; not while it is full.
static int send_end(size_t count) {
    uint8_t message[16] = {TRANSFER_END};
    size_t size = 1 + put_varint(message + 1, count);
    uint32_t value = count == kept.log_count ? kept.log_checksum : checksum(kept.log, count);
    for (int shift = 24; shift >= 0; shift -= 8) { message[size++] = (uint8_t)(value >> shift); }
    int32_t status = ferry_enqueue(session, message, size, NULL, board_now());
    if (status != FERRY_OK && status != FERRY_ERROR_FULL) { fail("ferry_enqueue", status); }
    if (status == FERRY_OK) { unsent++; }
    return status == FERRY_OK;
}

static void name_item(void) {
    uint8_t message[64] = {TRANSFER_ITEM};
    size_t size = 1;
    message[size++] = 0;  // a file
    message[size++] = 0;  // of unknown permissions
    message[size++] = 0;
    message[size++] = 0;  // and unknown time
    size += put_varint(message + size, (uint64_t)kept.log_count + 1);
    memcpy(message + size, readings_name, sizeof readings_name - 1);
    send_message(message, size + sizeof readings_name - 1);
}

// Sends data while the session takes it, and what ends it.
static void ship_readings(void) {
    static uint8_t message[1 + DATA_BYTES] = {TRANSFER_DATA};
    while (session != NULL && transfer == SENDING && (framing != FRAMING_SEQUENCED || unsent == 0)) {
        size_t count = kept.log_count - sent_bytes;
        if (count == 0) {
            if (send_end(kept.log_count)) { transfer = ENDING; }
            return;
        }
        if (count > DATA_BYTES) { count = DATA_BYTES; }
        memcpy(message + 1, kept.log + sent_bytes, count);
        int32_t status = ferry_enqueue(session, message, 1 + count, NULL, board_now());
        if (status == FERRY_ERROR_FULL) { return; }
        if (status != FERRY_OK) { return fail("ferry_enqueue", status); }
        unsent++;
        sent_bytes += count;
    }
}

// An answer of `ferry receive`.
static void take_answer(const uint8_t *bytes, size_t count) {
    uint64_t length = 0;
    uint8_t type = count > 0 ? bytes[0] : 0;
    if (transfer == GREETING && type == TRANSFER_WELCOME) {
        transfer = NAMING;
        name_item();
    } else if (transfer == NAMING && type == TRANSFER_PROVE && take_varint(bytes + 1, count - 1, &length) > 0) {
        send_end(length < kept.log_count ? (size_t)length : kept.log_count);
    } else if (transfer == NAMING && type == TRANSFER_HAVE && count >= 7) {
        size_t size = take_varint(bytes + 2, count - 2, &length);
        if (size == 0 || 2 + size + 4 != count) { return fail("an answer", FERRY_ERROR_MALFORMED_STREAM); }
        uint32_t theirs = 0;
        for (size_t at = 2 + size; at < count; at++) { theirs = theirs << 8 | bytes[at]; }
        int is_ours = length <= kept.log_count && checksum(kept.log, (size_t)length) == theirs;
        if (bytes[1] == 1) {
            // A whole file is there: the same one, or another that is not ours to replace.
            transfer = ENDING;
            if (is_ours && length == kept.log_count) {
                send_end(kept.log_count);
                return;
            }
            static const uint8_t give_up[] = "\x07the receiver has another file of this name";
            return send_message(give_up, sizeof give_up - 1);
        }
        sent_bytes = is_ours ? (size_t)length : 0;
        uint8_t go[16] = {TRANSFER_GO};
        send_message(go, 1 + put_varint(go + 1, sent_bytes));
        board_print(sent_bytes > 0 ? "sensor: goes on in the middle\n" : "sensor: begins at the first reading\n");
        transfer = SENDING;
    } else if ((transfer == ENDING && type == TRANSFER_DONE) || type == TRANSFER_REFUSED) {
        board_print(type == TRANSFER_DONE ? "sensor: the readings are delivered\n" : "sensor: the receiver refuses\n");
        static const uint8_t goodbye[] = {TRANSFER_GOODBYE};
        transfer = LEAVING;
        send_message(goodbye, sizeof goodbye);
    } else {
        fail("an answer", FERRY_ERROR_MALFORMED_STREAM);
    }
}

static void open_session(uint8_t number, const uint8_t *bytes, size_t count) {
    if (count != 4 || session != NULL) { return; }
    link_number = number;
    ferry_limits limits;
    ferry_limits_default(&limits);
    limits.message_bytes = MESSAGE_BYTES;
    limits.outbound_bytes = 2048;
    limits.outbound_messages = 6;
    limits.inbound_bytes = 4096;
    service = bytes[0];
    framing = bytes[1];
    unsent = 0;
    chunk_bytes = (size_t)bytes[2] << 8 | bytes[3];
    if (chunk_bytes < 20 || chunk_bytes > CHUNK_BYTES) { return; }
    chunks_in_module = 0;
    memory_use(arena, sizeof arena);
    int32_t status = framing == FRAMING_EOM ? ferry_create_end_of_message(&limits, NULL, 0, 0, &session)
        : framing == FRAMING_LENGTH ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &session)
        // No session before had this identifier, also not before a reset.
        : ferry_create_sequenced_for(&limits, 0x5e450000u + ++kept.starts, 8,
              service == SERVICE_CARD ? FERRY_CODEC_JSON : FERRY_CODEC_BYTES, &session);
    if (status == FERRY_OK) { status = ferry_link_opened(session, board_now()); }
    if (status != FERRY_OK) { return fail("ferry_create", status); }
    if (service == SERVICE_CARD) { return send_message((const uint8_t *)card, sizeof card - 1); }
    static const uint8_t hello[] = {TRANSFER_HELLO, 1, 1};
    transfer = GREETING;
    send_message(hello, sizeof hello);
}

static void take_packet(uint8_t type, uint8_t number, const uint8_t *bytes, size_t count) {
    if (type != PACKET_OPENED && number != link_number) { return; }
    switch (type) {
    case PACKET_OPENED: open_session(number, bytes, count); break;
    case PACKET_CLOSED:
        if (session != NULL) { board_print("sensor: the line has ended\n"); }
        end_session();
        break;
    case PACKET_CHUNK:
        if (session == NULL) { break; }
        int32_t status = ferry_receive(session, bytes, count, board_now());
        if (status < 0) { fail("ferry_receive", status); }
        break;
    case PACKET_TAKEN:
        if (chunks_in_module > 0) { chunks_in_module--; }
        break;
    }
}

// Assembles packets from what has come.
static void read_serial(void) {
    static uint8_t packet[4 + CHUNK_BYTES];
    static size_t count, matched;
    static int64_t next;
    int byte;
    // The module may not listen yet.
    if (matched < sizeof started && board_now() >= next) {
        board_serial_write(started, sizeof started);
        next = board_now() + 200000000;
    }
    while ((byte = board_serial_read()) >= 0) {
        if (matched < sizeof started) {
            matched = byte == started[matched] ? matched + 1 : byte == started[0];
            continue;
        }
        packet[count++] = (uint8_t)byte;
        size_t size = count < 3 ? 0 : (size_t)packet[1] << 8 | packet[2];
        if (size > 1 + CHUNK_BYTES) {
            board_print("sensor: the module has sent a packet that is too large\n");
            board_exit(6);
        }
        if (count < 3 || count < 3 + size) { continue; }
        count = 0;
        if (size > 0) { take_packet(packet[0], packet[3], packet + 4, size - 1); }
        return;
    }
}

// Events, data, chunks and timers, until the session has no more to do.
static void pump(void) {
    static uint8_t message[MESSAGE_BYTES], chunk[CHUNK_BYTES];
    ferry_event event;
    size_t count;
    int64_t deadline;
    while (session != NULL && ferry_next_event(session, &event, message, sizeof message, board_now()) == FERRY_OK) {
        if (event.kind == FERRY_EVENT_FAILED || event.kind == FERRY_EVENT_RECEIVE_FAILED) {
            return fail("an event", event.error);
        }
        if (event.kind == FERRY_EVENT_SENT) { unsent--; }
        if (event.kind != FERRY_EVENT_RECEIVED) { continue; }
        if (service == SERVICE_CARD) {
            print("sensor: got the card ", message, event.count);
        } else {
            take_answer(message, event.count);
        }
    }
    ship_readings();
    while (session != NULL && chunks_in_module < MODULE_CHUNKS) {
        int32_t status = ferry_next_chunk(session, chunk, chunk_bytes, &count, board_now());
        if (status < 0) { return fail("ferry_next_chunk", status); }
        if (status != FERRY_OK) { break; }
        send_packet(PACKET_CHUNK, chunk, count);
        chunks_in_module++;
    }
    if (session != NULL && ferry_deadline(session, &deadline) == FERRY_OK && board_now() >= deadline) {
        int32_t status = ferry_wake(session, board_now());
        if (status < 0) { fail("ferry_wake", status); }
    }
}

int board_main(void) {
    if (kept.mark != MARK || kept.log_count > LOG_BYTES || checksum(kept.log, kept.log_count) != kept.log_checksum) {
        memset(&kept, 0, sizeof kept);
        kept.mark = MARK;
        take_readings();
        board_print("sensor: started, with new readings\n");
    } else {
        board_print("sensor: started again, with the readings of before\n");
    }
    for (;;) {
        read_serial();
        pump();
    }
}
