// Golden vectors and the fuzzers' corpora, on any machine: Tests/Vectors/README.md says what the lines mean.
//
//     vectors lines FILE     # does the cases of a file; tells what is there instead of what a line says
//     vectors corpus FILE    # inputs, each after 2 bytes of its length; prints a hash of all answers to each
//
// `scripts/firmware run` compares what the boards print with what this machine does.

#include "board.h"
#include "ferry.h"
#include "memory.h"

#include <string.h>

enum { FILE_BYTES = 1 << 20, MEMORY_BYTES = 2 << 20, MESSAGE_BYTES = 8192, CHUNK_BYTES = 1024, LARGEST_WORDS = 8 };

static char file[FILE_BYTES + 1];
static uint8_t message[MESSAGE_BYTES], chunk[CHUNK_BYTES];
#ifndef FERRY_HOST
static uint8_t arena[MEMORY_BYTES];
_Noreturn void memory_is_full(size_t bytes) {
    (void)bytes;
    board_print("the memory is full\n");
    board_exit(5);
}
#endif

static void print_number(int64_t number) {
    char text[24], *place = text + sizeof text - 1;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *place = 0;
    do { *--place = (char)('0' + rest % 10); } while ((rest /= 10) > 0);
    if (number < 0) { *--place = '-'; }
    board_print(place);
}

static void print_bytes(const uint8_t *bytes, size_t count) {
    static const char digits[] = "0123456789abcdef";
    for (size_t at = 0; at < count; at++) {
        char text[3] = {digits[bytes[at] >> 4], digits[bytes[at] & 15], 0};
        board_print(text);
    }
}

static int64_t number(const char *word) {
    int is_negative = *word == '-';
    int64_t value = 0;
    for (word += is_negative; *word >= '0' && *word <= '9'; word++) { value = value * 10 + (*word - '0'); }
    return is_negative ? -value : value;
}

static int digit(char character) { return character <= '9' ? character - '0' : character - 'a' + 10; }

static uint32_t hexadecimal(const char *word) {
    uint32_t value = 0;
    for (; *word != 0; word++) { value = value << 4 | (uint32_t)digit(*word); }
    return value;
}

// Writes the bytes over the word; "-" is none.
static size_t bytes(char *word) {
    size_t count = 0;
    if (word[0] == '-') { return 0; }
    for (; word[2 * count] != 0; count++) {
        word[count] = (char)(digit(word[2 * count]) << 4 | digit(word[2 * count + 1]));
    }
    return count;
}

// One case.
static ferry_session *sides[2];
static ferry_limits limits;
static size_t link_bytes;
static int64_t now;
// An event that was fetched and not yet asked for.
static struct {
    int is_there;
    ferry_event event;
    uint8_t message[MESSAGE_BYTES];
} held[2];

static void forget(void) {
    for (int side = 0; side < 2; side++) {
        ferry_destroy(sides[side]);
        sides[side] = NULL;
        held[side].is_there = 0;
    }
    ferry_limits_default(&limits);
    link_bytes = 20;
    now = 0;
}

static int32_t create(char **words, int count, int side) {
    if (strcmp(words[0], "length") == 0 && count == 2) {
        static const char *const prefixes[] = {"varint", "16-big", "16-little", "32-big", "32-little"};
        for (int32_t prefix = 0; prefix < 5; prefix++) {
            if (strcmp(words[1], prefixes[prefix]) == 0) { return ferry_create_length_prefix(&limits, prefix, &sides[side]); }
        }
    } else if (strcmp(words[0], "eom") == 0 && count == 3) {
        char marker[64];
        strncpy(marker, words[1], sizeof marker - 1);
        marker[sizeof marker - 1] = 0;
        size_t size = bytes(marker);
        return ferry_create_end_of_message(&limits, marker, size, (uint32_t)number(words[2]), &sides[side]);
    } else if (strcmp(words[0], "sequenced") == 0 && count == 4) {
        return ferry_create_sequenced(&limits, hexadecimal(words[2 + side]), (uint32_t)number(words[1]), &sides[side]);
    }
    return FERRY_ERROR_ARGUMENT;
}

// The next event that is neither progress nor an end.
static int next(int side) {
    while (!held[side].is_there) {
        int32_t status =
            ferry_next_event(sides[side], &held[side].event, held[side].message, sizeof held[side].message, now);
        if (status != FERRY_OK) { return 0; }
        int kind = held[side].event.kind;
        held[side].is_there = kind != FERRY_EVENT_PROGRESS && kind != FERRY_EVENT_SENT;
    }
    return 1;
}

static int is_status(int32_t status, char **words, int count, int at) {
    int32_t expected = count > at ? (int32_t)number(words[at]) : FERRY_OK;
    if (status == expected) { return 1; }
    board_print("returned ");
    print_number(status);
    return 0;
}

static int is_event(int side, int32_t kind, int32_t error) {
    if (!next(side)) {
        board_print("no event");
        return 0;
    }
    held[side].is_there = 0;
    if (held[side].event.kind == kind && held[side].event.error == error) { return 1; }
    board_print("event ");
    print_number(held[side].event.kind);
    board_print(" with error ");
    print_number(held[side].event.error);
    return 0;
}

// Does a line of a side. Returns 0 after telling what is there instead.
static int perform_side(int side, const char *verb, char **words, int count) {
    if (strcmp(verb, "send") == 0) {
        size_t size = bytes(words[0]);
        return is_status(ferry_enqueue(sides[side], words[0], size, NULL, now), words, count, 1);
    }
    if (strcmp(verb, "chunk") == 0 || strcmp(verb, "lost") == 0) {
        size_t expected = bytes(words[0]), size = 0;
        int32_t status = ferry_next_chunk(sides[side], chunk, link_bytes, &size, now);
        if (status != FERRY_OK || size != expected || memcmp(chunk, words[0], size) != 0) {
            board_print("status ");
            print_number(status);
            board_print(" chunk ");
            print_bytes(chunk, status == FERRY_OK ? size : 0);
            return 0;
        }
        return verb[0] == 'l' || is_status(ferry_receive(sides[!side], chunk, size, now), words, count, 1);
    }
    if (strcmp(verb, "idle") == 0) {
        size_t size = 0;
        int32_t status = ferry_next_chunk(sides[side], chunk, link_bytes, &size, now);
        return is_status(status == FERRY_NOTHING ? FERRY_OK : status == FERRY_OK ? FERRY_NOTHING : status, words, count, 0);
    }
    if (strcmp(verb, "take") == 0) {
        size_t size = bytes(words[0]);
        return is_status(ferry_receive(sides[side], words[0], size, now), words, count, 1);
    }
    if (strcmp(verb, "message") == 0) {
        size_t size = bytes(words[0]);
        if (!is_event(side, FERRY_EVENT_RECEIVED, 0)) { return 0; }
        if (held[side].event.count == size && memcmp(held[side].message, words[0], size) == 0) { return 1; }
        board_print("message ");
        print_bytes(held[side].message, held[side].event.count);
        return 0;
    }
    if (strcmp(verb, "failed") == 0) {
        if (!is_event(side, FERRY_EVENT_FAILED, (int32_t)number(words[1]))) { return 0; }
        return held[side].event.number == (uint64_t)number(words[0]);
    }
    if (strcmp(verb, "dropped") == 0) { return is_event(side, FERRY_EVENT_RECEIVE_FAILED, (int32_t)number(words[0])); }
    if (strcmp(verb, "nothing") == 0) {
        if (!next(side)) { return 1; }
        board_print("an event");
        return 0;
    }
    if (strcmp(verb, "cancel") == 0) {
        int32_t status = ferry_cancel(sides[side], (uint64_t)number(words[0]), now);
        return status == (strcmp(words[1], "taken") == 0 ? FERRY_OK : FERRY_NOTHING);
    }
    if (strcmp(verb, "wake") == 0) { return is_status(ferry_wake(sides[side], now), words, count, 0); }
    if (strcmp(verb, "open") == 0) { return is_status(ferry_link_opened(sides[side], now), words, count, 0); }
    if (strcmp(verb, "close") == 0) { return is_status(ferry_link_closed(sides[side], now), words, count, 0); }
    board_print("an unknown line");
    return 0;
}

static int perform(char **words, int count) {
    if (strcmp(words[0], "limits") == 0 && count == 3) {
        limits.message_bytes = (uint32_t)number(words[1]);
        limits.inbound_bytes = (uint32_t)number(words[2]);
    } else if (strcmp(words[0], "framing") == 0 && count > 1) {
        for (int side = 0; side < 2; side++) {
            int32_t status = create(words + 1, count - 1, side);
            if (status != FERRY_OK || ferry_link_opened(sides[side], 0) != FERRY_OK) {
                board_print("not created");
                return 0;
            }
        }
    } else if (strcmp(words[0], "link") == 0 && count == 2 && number(words[1]) <= CHUNK_BYTES) {
        link_bytes = (size_t)number(words[1]);
    } else if (strcmp(words[0], "time") == 0 && count == 2) {
        now = number(words[1]);
    } else if ((words[0][0] == 'a' || words[0][0] == 'b') && words[0][1] == 0 && count > 1) {
        return perform_side(words[0][0] == 'b', words[1], words + 2, count - 2);
    } else {
        board_print("an unknown line");
        return 0;
    }
    return 1;
}

static int do_lines(char *line) {
    long cases = 0, wrong = 0, lines = 0;
    int is_skipped = 0;
    const char *name = "";
    for (char *end; *line != 0; line = end) {
        char *words[LARGEST_WORDS] = {line};
        int count = 1;
        end = strchr(line, '\n');
        end = end == NULL ? line + strlen(line) : (*end = 0, end + 1);
        if (line[0] == '#' || line[0] == 0) { continue; }
        if (strncmp(line, "case ", 5) == 0) {
            forget();
            name = line + 5;
            is_skipped = 0;
            cases++;
            continue;
        }
        for (char *at = line; *at != 0 && count < LARGEST_WORDS; at++) {
            if (*at == ' ') {
                *at = 0;
                words[count++] = at + 1;
            }
        }
        if (is_skipped) { continue; }
        lines++;
        // What follows a wrong line means nothing.
        is_skipped = !perform(words, count);
        if (!is_skipped) { continue; }
        board_print(": ");
        board_print(name);
        board_print(": line ");
        print_number(lines);
        board_print("\n");
        wrong++;
    }
    forget();
    print_number(cases);
    board_print(" cases of ");
    print_number(lines);
    board_print(" lines, ");
    print_number(wrong);
    board_print(" wrong\n");
    return wrong != 0 || cases == 0;
}

// FNV-1a.
static uint32_t hash;
static void note_byte(uint8_t byte) { hash = (hash ^ byte) * 16777619u; }
static void note_number(int64_t number) {
    for (int at = 0; at < 8; at++) { note_byte((uint8_t)((uint64_t)number >> (8 * at))); }
}
static void note_bytes(const uint8_t *bytes, size_t count) {
    note_number((int64_t)count);
    for (size_t at = 0; at < count; at++) { note_byte(bytes[at]); }
}

static void note_events(int side) {
    ferry_event event;
    while (ferry_next_event(sides[side], &event, message, sizeof message, now) == FERRY_OK) {
        note_number(event.kind);
        note_number(event.error);
        note_number((int64_t)event.number);
        note_bytes(message, event.kind == FERRY_EVENT_RECEIVED ? event.count : 0);
        note_number((int64_t)event.count);
    }
}

// The input's bytes choose what is done, and are what arrives: 20 bytes of it are two messages, then byte for byte a step.
static void feed(int framing, const uint8_t *input, size_t count) {
    forget();
    for (int side = 0; side < 2; side++) {
        int32_t status = framing == 0 ? ferry_create_end_of_message(&limits, NULL, 0, 0, &sides[side])
            : framing == 1            ? ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &sides[side])
                                      : ferry_create_sequenced(&limits, (uint32_t)side + 1, 8, &sides[side]);
        note_number(status);
        note_number(ferry_link_opened(sides[side], now));
        note_number(ferry_enqueue(sides[side], input, count < 20 ? count : 20, NULL, now));
    }
    for (size_t at = 0; at < count;) {
        uint8_t step = input[at++];
        int side = step & 1;
        size_t size = step >> 3, written = 0;
        if (size > count - at) { size = count - at; }
        switch (step >> 1 & 3) {
        case 0:
            note_number(ferry_receive(sides[side], input + at, size, now));
            at += size;
            break;
        case 1:
            note_number(ferry_next_chunk(sides[side], chunk, 20 + (step >> 3), &written, now));
            note_bytes(chunk, written);
            if (written > 0) { note_number(ferry_receive(sides[!side], chunk, written, now)); }
            break;
        case 2:
            note_number(ferry_enqueue(sides[side], input + at, size, NULL, now));
            at += size;
            break;
        default:
            now += (int64_t)size * 100000000;
            note_number(ferry_wake(sides[side], now));
            // Every eighth of these steps loses the line for both.
            if (step >> 3 == 5) {
                note_number(ferry_link_closed(sides[0], now));
                note_number(ferry_link_closed(sides[1], now));
                note_number(ferry_link_opened(sides[0], now));
                note_number(ferry_link_opened(sides[1], now));
            }
        }
        note_events(0);
        note_events(1);
        int64_t deadline = 0;
        note_number(ferry_deadline(sides[side], &deadline));
        note_number(deadline);
    }
}

static int do_corpus(const uint8_t *input, size_t size) {
    long inputs = 0;
    for (size_t at = 0; at + 2 <= size; inputs++) {
        size_t count = (size_t)input[at] << 8 | input[at + 1];
        at += 2;
        if (count > size - at) { count = size - at; }
        print_number(inputs);
        for (int framing = 0; framing < 3; framing++) {
            hash = 2166136261u;
            feed(framing, input + at, count);
            uint8_t bytes[4] = {(uint8_t)(hash >> 24), (uint8_t)(hash >> 16), (uint8_t)(hash >> 8), (uint8_t)hash};
            board_print(" ");
            print_bytes(bytes, 4);
        }
        board_print("\n");
        at += count;
    }
    forget();
    return inputs == 0;
}

int board_main(void) {
    static char words[512];
    board_arguments(words, sizeof words);
#ifndef FERRY_HOST
    memory_use(arena, sizeof arena);
#endif
    char *mode = strstr(words, "lines ");
    if (mode == NULL) { mode = strstr(words, "corpus "); }
    char *path = mode == NULL ? NULL : strchr(mode, ' ') + 1;
    long size = path == NULL ? -1 : board_read_file(path, file, FILE_BYTES);
    if (size < 0 || size == FILE_BYTES) {
        board_print("say lines FILE or corpus FILE; the file has less than 1 MiB\n");
        return 2;
    }
    file[size] = 0;
    return mode[0] == 'l' ? do_lines(file) : do_corpus((const uint8_t *)file, (size_t)size);
}
