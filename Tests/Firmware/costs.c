// What a session costs on a board whose clock counts instructions (QEMU's -icount shift=0): instructions for each chunk of either
// side, memory, and stack. `scripts/firmware costs` compares it with costs.txt.

#include "board.h"
#include "ferry.h"
#include "memory.h"

#include <string.h>

enum { MEMORY_BYTES = 256 << 10, MESSAGES = 40, MESSAGE_BYTES = 1000, PAINT = 0xa5, SPARE_BYTES = 256 };
enum { EOM, LENGTH, SEQUENCED, BY_HAND };
static const char *const names[] = {"eom", "length", "sequenced", "by-hand"};

static uint8_t arena[MEMORY_BYTES], message[MESSAGE_BYTES], got[MESSAGE_BYTES], chunk[244];

_Noreturn void memory_is_full(size_t bytes) {
    (void)bytes;
    board_print("the memory is full\n");
    board_exit(5);
}

// A length prefix of 2 bytes, as one writes it for one message at a time: no limits but the buffer, no events.
typedef struct {
    const uint8_t *bytes;
    size_t count, sent;
} hand_sender;
typedef struct {
    uint8_t *buffer;
    size_t capacity, count, length, header;
} hand_receiver;

__attribute__((noinline)) static size_t hand_next(hand_sender *sender, uint8_t *buffer, size_t capacity) {
    size_t count = 0;
    for (; count < capacity && sender->sent < sender->count + 2; sender->sent++) {
        buffer[count++] = sender->sent == 0 ? (uint8_t)(sender->count >> 8)
            : sender->sent == 1             ? (uint8_t)sender->count
                                            : sender->bytes[sender->sent - 2];
    }
    return count;
}

// 1 when the message is whole, -1 when it is too large.
__attribute__((noinline)) static int hand_receive(hand_receiver *receiver, const uint8_t *bytes, size_t count) {
    for (; count > 0; count--, bytes++) {
        if (receiver->header < 2) {
            receiver->length = receiver->length << 8 | *bytes;
            if (++receiver->header == 2 && receiver->length > receiver->capacity) { return -1; }
        } else if (receiver->count < receiver->length) {
            receiver->buffer[receiver->count++] = *bytes;
        }
    }
    return receiver->header == 2 && receiver->count == receiver->length;
}

static void print_number(int64_t number) {
    char text[24], *place = text + sizeof text - 1;
    *place = 0;
    do { *--place = (char)('0' + number % 10); } while ((number /= 10) > 0);
    board_print(" ");
    board_print(place);
}

static void fail(const char *what) {
    board_print(what);
    board_print("\n");
    board_exit(1);
}

// Paints the stack below this function's own.
static void paint(void) {
    uint8_t *top = (uint8_t *)__builtin_frame_address(0) - SPARE_BYTES;
    for (volatile uint8_t *byte = stack_low; byte < top; byte++) { *byte = PAINT; }
}

// The bytes of the stack that have been used below a frame.
static size_t used(const uint8_t *frame) {
    const uint8_t *byte = stack_low;
    while (byte < frame && *byte == PAINT) { byte++; }
    return (size_t)(frame - byte);
}

static ferry_session *sides[2];
static int64_t elapsed[2], overhead;
static size_t chunks;

static void fetch(int side, int *received) {
    ferry_event event;
    while (ferry_next_event(sides[side], &event, got, sizeof got, 0) == FERRY_OK) {
        if (event.kind == FERRY_EVENT_RECEIVED) {
            if (event.count != MESSAGE_BYTES || memcmp(got, message, MESSAGE_BYTES) != 0) { fail("a wrong message"); }
            ++*received;
        } else if (event.kind >= FERRY_EVENT_FAILED) {
            fail("an error event");
        }
    }
}

// Moves chunks both ways until there are none. What a side does counts as its own.
__attribute__((noinline)) static void exchange(size_t size, int *received) {
    for (int moved = 1; moved;) {
        moved = 0;
        for (int side = 0; side < 2; side++) {
            size_t count;
            int64_t start = board_now();
            int32_t status = ferry_next_chunk(sides[side], chunk, size, &count, 0);
            fetch(side, received);
            int64_t middle = board_now();
            elapsed[side] += middle - start - overhead;
            if (status != FERRY_OK) { continue; }
            moved = 1;
            chunks += side == 0;
            if (ferry_receive(sides[!side], chunk, count, 0) != FERRY_OK) { fail("a chunk was refused"); }
            fetch(!side, received);
            elapsed[!side] += board_now() - middle - overhead;
        }
    }
}

static void by_hand(size_t size, int *received) {
    hand_sender sender = {message, sizeof message, 0};
    hand_receiver receiver = {got, sizeof got, 0, 0, 0};
    for (;;) {
        int64_t start = board_now();
        size_t count = hand_next(&sender, chunk, size);
        int64_t middle = board_now();
        elapsed[0] += middle - start - overhead;
        if (count == 0) { break; }
        chunks++;
        *received += hand_receive(&receiver, chunk, count);
        elapsed[1] += board_now() - middle - overhead;
    }
}

static void measure(int framing, size_t size) {
    ferry_limits limits;
    size_t created = 0, session = 0;
    int received = 0;
    memory_use(arena, sizeof arena);
    chunks = 0;
    elapsed[0] = elapsed[1] = 0;
    ferry_limits_default(&limits);
    paint();
    for (int side = 0; side < 2 && framing != BY_HAND; side++) {
        int32_t status = framing == EOM ? ferry_create_end_of_message(&limits, NULL, 0, 0, &sides[side])
            : framing == LENGTH         ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &sides[side])
                                        : ferry_create_sequenced(&limits, (uint32_t)side + 1, 8, &sides[side]);
        if (status != FERRY_OK || ferry_link_opened(sides[side], 0) != FERRY_OK) { fail("no session"); }
        created = memory_taken();
        if (side == 0) { session = created; }
    }
    for (int number = 0; number < MESSAGES; number++) {
        if (framing == BY_HAND) {
            by_hand(size, &received);
        } else {
            if (ferry_enqueue(sides[0], message, sizeof message, NULL, 0) != FERRY_OK) { fail("not taken"); }
            exchange(size, &received);
        }
    }
    size_t stack = used(__builtin_frame_address(0)), peak = memory_peak();
    for (int side = 0; side < 2 && framing != BY_HAND; side++) { ferry_destroy(sides[side]); }
    if (memory_taken() != 0) { fail("memory is left"); }
    if (received != MESSAGES) { fail("not all messages arrived"); }
    board_print(names[framing]);
    print_number((int64_t)size);
    print_number(elapsed[0] / (int64_t)chunks);
    print_number(elapsed[1] / (int64_t)chunks);
    print_number((int64_t)session);
    print_number((int64_t)peak);
    print_number((int64_t)stack);
    board_print("\n");
}

// As README.md of Examples/Firmware states it, for one session.
static size_t bound(const ferry_limits *limits, int framing, size_t window) {
    size_t bytes = 2048 + limits->outbound_bytes + 64 * limits->outbound_messages + 3 * limits->message_bytes
        + 2 * limits->inbound_bytes;
    return framing == SEQUENCED ? bytes + 6144 + 3 * limits->message_bytes + window * 244 : bytes;
}

// Fills both sides: each queues all that it may, of few large and many small messages, and fetches only when it must.
static void fill(int framing) {
    static uint8_t large[4096];
    static const size_t sizes[] = {4096, 512, 1, 4000};
    ferry_limits limits;
    memory_use(arena, sizeof arena);
    ferry_limits_default(&limits);
    for (int side = 0; side < 2; side++) {
        int32_t status = framing == EOM ? ferry_create_end_of_message(&limits, NULL, 0, 0, &sides[side])
            : framing == LENGTH         ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &sides[side])
                                        : ferry_create_sequenced(&limits, (uint32_t)side + 1, 8, &sides[side]);
        if (status != FERRY_OK || ferry_link_opened(sides[side], 0) != FERRY_OK) { fail("no session"); }
    }
    for (int round = 0; round < 40; round++) {
        for (int side = 0; side < 2; side++) {
            while (ferry_enqueue(sides[side], large, sizes[(round + side) % 4], NULL, 0) == FERRY_OK) {}
        }
        for (int moved = 1; moved;) {
            moved = 0;
            for (int side = 0; side < 2; side++) {
                size_t count;
                ferry_event event;
                int is_last = ferry_next_chunk(sides[side], chunk, sizeof chunk, &count, 0) != FERRY_OK;
                if (!is_last) {
                    moved = 1;
                    int32_t status;
                    while ((status = ferry_receive(sides[!side], chunk, count, 0)) == FERRY_ERROR_FULL) {
                        while (ferry_next_event(sides[!side], &event, large, sizeof large, 0) == FERRY_OK) {}
                    }
                    if (status != FERRY_OK) { fail("a chunk was refused"); }
                } else {
                    while (ferry_next_event(sides[side], &event, large, sizeof large, 0) == FERRY_OK) { moved = 1; }
                }
            }
        }
    }
    size_t peak = memory_peak();
    for (int side = 0; side < 2; side++) { ferry_destroy(sides[side]); }
    board_print(names[framing]);
    board_print(" full");
    print_number((int64_t)peak);
    board_print("\n");
    if (peak > 2 * bound(&limits, framing, 8)) { fail("this is more than Examples/Firmware/README.md says"); }
}

int board_main(void) {
    for (size_t at = 0; at < sizeof message; at++) { message[at] = (uint8_t)at; }
    // What it takes to read the clock.
    int64_t start = board_now();
    for (int at = 0; at < 999; at++) { board_now(); }
    overhead = (board_now() - start) / 1000;
    static const size_t sizes[] = {20, 182, 244};
    for (int framing = EOM; framing <= BY_HAND; framing++) {
        for (int at = 0; at < 3; at++) { measure(framing, sizes[at]); }
        if (framing != BY_HAND) { fill(framing); }
    }
    return 0;
}
