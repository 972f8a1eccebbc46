// The smallest program for one framing, whose code is measured. FRAMING is 0 for end of message, 1 for the length prefix, 2 for
// sequenced, 3 for none.

#include "board.h"
#include "ferry.h"
#include "memory.h"

#include <stdlib.h>

_Noreturn void memory_is_full(size_t bytes) {
    (void)bytes;
    board_exit(5);
}

static uint8_t arena[1024];
#if FRAMING < 3
static uint8_t buffer[244];
#endif

int board_main(void) {
    memory_use(arena, sizeof arena);
#if FRAMING < 3
    ferry_limits limits;
    ferry_session *session;
    ferry_event event;
    size_t count;
    int64_t at;
    ferry_limits_default(&limits);
#if FRAMING == 0
    ferry_create_end_of_message(&limits, NULL, 0, 0, &session);
#elif FRAMING == 1
    ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &session);
#else
    ferry_create_sequenced(&limits, 1, 8, &session);
#endif
    ferry_link_opened(session, board_now());
    ferry_enqueue(session, buffer, sizeof buffer, NULL, board_now());
    ferry_next_chunk(session, buffer, sizeof buffer, &count, board_now());
    ferry_receive(session, buffer, count, board_now());
    ferry_next_event(session, &event, buffer, sizeof buffer, board_now());
    ferry_deadline(session, &at);
    ferry_wake(session, at);
    ferry_link_closed(session, at);
    ferry_error_text(session, (char *)buffer, sizeof buffer);
    ferry_destroy(session);
#else
    // The memory and the clock are the program's own in each case.
    void *place;
    if (posix_memalign(&place, 8, (size_t)board_now()) != 0) { return 1; }
    free(place);
#endif
    return 0;
}
