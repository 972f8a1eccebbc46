// Bad input at the border of ferry.h: null, impossible sizes, small buffers, calls in the wrong order. Each is an error number, and
// nothing is written outside. On this machine under the address sanitizer; on the boards with marks around each buffer.

#include "board.h"
#include "ferry.h"
#include "memory.h"

#include <string.h>

enum { MARK = 0x5a, FRAMINGS = 3 };

static int wrong;
#ifndef FERRY_HOST
static uint8_t arena[64 << 10];
_Noreturn void memory_is_full(size_t bytes) {
    (void)bytes;
    board_print("the memory is full\n");
    board_exit(5);
}
#endif

#define expect(call, status)                                     \
    do {                                                         \
        if ((call) != (status)) {                                \
            board_print("not " #status ": " #call "\n");         \
            wrong++;                                             \
        }                                                        \
    } while (0)

static ferry_limits limits;
static ferry_session *create(int framing) {
    ferry_session *session = NULL;
    int32_t status = framing == 0 ? ferry_create_end_of_message(&limits, NULL, 0, 0, &session)
        : framing == 1            ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &session)
                                  : ferry_create_sequenced(&limits, 1, 8, &session);
    expect(status, FERRY_OK);
    return session;
}

static void refuse_null(void) {
    ferry_session *session = NULL;
    ferry_event event;
    uint8_t byte = 0;
    char text = 0;
    size_t count;
    int64_t at;
    expect(ferry_limits_default(NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(NULL, NULL, 0, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(&limits, NULL, 0, 0, NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_length_prefix(NULL, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_length_prefix(&limits, 0, NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced(NULL, 1, 8, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced(&limits, 1, 8, NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced_for(NULL, 1, 8, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced_for(&limits, 1, 8, 0, NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_link_opened(NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_link_closed(NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_enqueue(NULL, &byte, 1, NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_cancel(NULL, 0, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_chunk(NULL, &byte, 1, &count, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_receive(NULL, &byte, 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_event(NULL, &event, &byte, 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_deadline(NULL, &at), FERRY_ERROR_ARGUMENT);
    expect(ferry_wake(NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_error_text(NULL, &text, 1), FERRY_ERROR_ARGUMENT);
    ferry_destroy(NULL);
}

static void refuse_limits(void) {
    ferry_session *session = NULL;
    const ferry_limits kept = limits;
    uint8_t marker[30] = {1};
    limits.message_bytes = (16 << 20) + 1;
    expect(ferry_create_length_prefix(&limits, 0, &session), FERRY_ERROR_ARGUMENT);
    limits = kept;
    limits.outbound_messages = 0;
    expect(ferry_create_sequenced(&limits, 1, 8, &session), FERRY_ERROR_ARGUMENT);
    limits = kept;
    limits.outbound_bytes = limits.inbound_bytes = UINT32_MAX;
    expect(ferry_create_end_of_message(&limits, NULL, 0, 0, &session), FERRY_ERROR_ARGUMENT);
    limits = kept;
    limits.stall_nanoseconds = INT64_MIN;
    expect(ferry_create_length_prefix(&limits, 0, &session), FERRY_ERROR_ARGUMENT);
    limits = kept;
    expect(ferry_create_length_prefix(&limits, -1, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_length_prefix(&limits, INT32_MAX, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced(&limits, 1, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced(&limits, 1, UINT32_MAX, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced_for(&limits, 1, 8, 6, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_sequenced_for(&limits, 1, 8, 256, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(&limits, marker, 1, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(&limits, marker, 21, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(&limits, marker, SIZE_MAX, 0, &session), FERRY_ERROR_ARGUMENT);
    expect(ferry_create_end_of_message(&limits, marker, 20, 19, &session), FERRY_ERROR_ARGUMENT);
    expect(session == NULL, 1);
}

static void refuse_buffers(int framing) {
    static const size_t smallest[FRAMINGS] = {3, 1, 20};
    ferry_session *session = create(framing), *other = create(framing);
    ferry_event event;
    // What is written is in the middle.
    uint8_t buffer[60], message[5];
    char text[6];
    size_t count = 0;
    memset(buffer, MARK, sizeof buffer);
    memset(text, MARK, sizeof text);
    expect(ferry_link_opened(session, 0), FERRY_OK);
    expect(ferry_link_opened(other, 0), FERRY_OK);
    expect(ferry_enqueue(session, NULL, 1, NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_enqueue(session, message, SIZE_MAX, NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_enqueue(session, message, (size_t)limits.message_bytes + 1, NULL, 0), FERRY_ERROR_MESSAGE_TOO_LARGE);
    expect(ferry_receive(session, NULL, 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_receive(session, message, SIZE_MAX, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_chunk(session, NULL, 1, &count, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_chunk(session, buffer, 20, NULL, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_event(session, NULL, buffer, 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_next_event(session, &event, NULL, 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_deadline(session, NULL), FERRY_ERROR_ARGUMENT);
    expect(ferry_error_text(session, NULL, 1), FERRY_ERROR_ARGUMENT);
    expect(ferry_error_text(session, text + 1, 0), FERRY_ERROR_ARGUMENT);
    expect(ferry_enqueue(session, "hello", 5, NULL, 0), FERRY_OK);
    expect(ferry_next_chunk(session, buffer + 20, smallest[framing] - 1, &count, 0), FERRY_ERROR_BUFFER);
    expect(count, smallest[framing]);
    for (size_t at = 0; at < sizeof buffer; at++) { expect(buffer[at], MARK); }
    // The message does not fit, and stays.
    for (int moved = 1; moved;) {
        moved = 0;
        for (int side = 0; side < 2; side++) {
            ferry_session *from = side ? other : session, *to = side ? session : other;
            if (ferry_next_chunk(from, buffer + 20, 20, &count, 0) != FERRY_OK) { continue; }
            expect(ferry_receive(to, buffer + 20, count, 0), FERRY_OK);
            moved = 1;
        }
    }
    for (size_t at = 0; at < 20; at++) { expect(buffer[at] == MARK && buffer[at + 40] == MARK, 1); }
    memset(message, MARK, sizeof message);
    expect(ferry_next_event(other, &event, message, 4, 0), FERRY_ERROR_BUFFER);
    expect(event.count, 5);
    expect(message[0], MARK);
    expect(ferry_next_event(other, &event, message, 5, 0), FERRY_OK);
    expect(memcmp(message, "hello", 5), 0);
    expect(ferry_error_text(session, text + 1, 4), FERRY_OK);
    expect(text[0] == MARK && text[5] == MARK, 1);
    ferry_destroy(session);
    ferry_destroy(other);
}

static void refuse_order(int framing) {
    ferry_session *session = create(framing);
    uint8_t byte = 1, buffer[20];
    size_t count;
    int64_t at;
    expect(ferry_link_closed(session, 0), FERRY_ERROR_ORDER);
    expect(ferry_receive(session, &byte, 1, 0), FERRY_ERROR_ORDER);
    expect(ferry_next_chunk(session, buffer, sizeof buffer, &count, 0), FERRY_ERROR_ORDER);
    expect(ferry_deadline(session, &at), FERRY_ERROR_ORDER);
    expect(ferry_wake(session, 0), FERRY_ERROR_ORDER);
    expect(ferry_link_opened(session, INT64_MAX), FERRY_OK);
    expect(ferry_link_opened(session, INT64_MIN), FERRY_ERROR_ORDER);
    expect(ferry_wake(session, INT64_MIN), FERRY_OK);
    expect(ferry_link_closed(session, 0), FERRY_OK);
    expect(ferry_link_closed(session, 0), FERRY_ERROR_ORDER);
    expect(ferry_link_opened(session, 0), framing == 2 ? FERRY_OK : FERRY_ERROR_ORDER);
    expect(ferry_cancel(session, UINT64_MAX, 0), FERRY_NOTHING);
    ferry_destroy(session);
}

// A peer that sends the smallest messages, to one who fetches none: what they take is bounded.
static void flood(void) {
    enum { CHUNK = 244 };
    ferry_session *session = create(1);
    ferry_event event;
    uint8_t chunk[CHUNK] = {0};
    size_t taken = 0, fetched = 0;
    expect(ferry_link_opened(session, 0), FERRY_OK);
#ifndef FERRY_HOST
    size_t before = memory_taken();
#endif
    while (taken < 1000 && ferry_receive(session, chunk, CHUNK, 0) == FERRY_OK) { taken++; }
    expect(ferry_receive(session, chunk, CHUNK, 0), FERRY_ERROR_FULL);
#ifndef FERRY_HOST
    expect(memory_taken() - before <= limits.inbound_bytes + CHUNK * 64, 1);
#endif
    while (ferry_next_event(session, &event, NULL, 0, 0) == FERRY_OK) { fetched++; }
    expect(fetched, taken * CHUNK);
    expect(ferry_receive(session, chunk, CHUNK, 0), FERRY_OK);
    ferry_destroy(session);
}

int board_main(void) {
#ifndef FERRY_HOST
    memory_use(arena, sizeof arena);
#endif
    ferry_limits_default(&limits);
    refuse_null();
    refuse_limits();
    for (int framing = 0; framing < FRAMINGS; framing++) {
        refuse_buffers(framing);
        refuse_order(framing);
    }
    flood();
    board_print(wrong == 0 ? "bad input is refused\n" : "bad input is not refused\n");
    return wrong != 0;
}
