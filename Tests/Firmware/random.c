// Two sessions of each framing exchange messages over a link that, in every third run, loses and damages chunks. Every buffer has
// exactly the size that the library is told, for the address sanitizer (`scripts/firmware check`).
//
//     random RUNS

#include "ferry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 600, LARGEST = 4096, CALLS = 200 };

static uint64_t state;
static unsigned below(unsigned bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % bound;
}

static ferry_session *create(int framing, uint32_t identifier) {
    ferry_limits limits;
    ferry_session *session = NULL;
    ferry_limits_default(&limits);
    int32_t status = framing == 0 ? ferry_create_end_of_message(&limits, NULL, 0, 0, &session)
        : framing == 1            ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &session)
                                  : ferry_create_sequenced(&limits, identifier, 8, &session);
    if (status != FERRY_OK) {
        printf("framing %d: creation returned %d\n", framing, (int)status);
        exit(1);
    }
    ferry_link_opened(session, 0);
    return session;
}

static long received, wrong, refused;

// Fetches all events. Every byte of a message is the sender's mark.
static void fetch(ferry_session *session, int mark, int is_damaging, int64_t now) {
    ferry_event event;
    size_t capacity = 0;
    uint8_t *message = NULL;
    int32_t status;
    while ((status = ferry_next_event(session, &event, message, capacity, now)) != FERRY_NOTHING) {
        if (status == FERRY_ERROR_BUFFER) {
            free(message);
            capacity = event.count;
            message = malloc(capacity);
            continue;
        }
        if (event.kind != FERRY_EVENT_RECEIVED) { continue; }
        received++;
        for (size_t place = 0; place < event.count; place++) {
            if (message[place] != mark && !is_damaging) { wrong++; }
        }
    }
    free(message);
}

// Moves one chunk. Returns whether there was one.
static int move(ferry_session *from, ferry_session *to, int is_damaging, int64_t now) {
    size_t capacity = 20 + below(60), count;
    uint8_t *buffer = malloc(capacity);
    int there = ferry_next_chunk(from, buffer, capacity, &count, now) == FERRY_OK;
    if (there && !(is_damaging && below(15) == 0)) {
        uint8_t *chunk = malloc(count);
        memcpy(chunk, buffer, count);
        if (is_damaging && below(20) == 0) { chunk[below((unsigned)count)] ^= (uint8_t)below(256); }
        if (ferry_receive(to, chunk, count, now) < 0) { refused++; }
        free(chunk);
    }
    free(buffer);
    return there;
}

static void run(int framing, unsigned seed) {
    state = seed * 2654435761u + 1;
    int is_damaging = seed % 3 == 2;
    ferry_session *sessions[2] = {create(framing, 1), create(framing, 2)};
    int64_t now = 0;
    for (int call = 0; call < CALLS; call++) {
        unsigned side = below(2);
        now += below(50000000);
        size_t count = below(MESSAGE);
        uint8_t *message = malloc(count);
        memset(message, (int)side + 1, count);
        ferry_enqueue(sessions[side], message, count, NULL, now);
        free(message);
        for (int chunk = 0; chunk < 20 && move(sessions[side], sessions[!side], is_damaging, now); chunk++) {
            fetch(sessions[!side], (int)side + 1, is_damaging, now);
            fetch(sessions[side], !side + 1, is_damaging, now);
        }
        ferry_wake(sessions[0], now);
        ferry_wake(sessions[1], now);
    }
    ferry_destroy(sessions[0]);
    ferry_destroy(sessions[1]);
}

int main(int count, char **arguments) {
    unsigned runs = count > 1 ? (unsigned)atoi(arguments[1]) : 30;
    for (int framing = 0; framing < 3; framing++) {
        for (unsigned seed = 0; seed < runs; seed++) { run(framing, seed); }
    }
    printf("%u runs a framing: %ld messages arrived, %ld bytes wrong, %ld chunks refused\n", runs, received, wrong, refused);
    return wrong != 0 || received < runs;
}
