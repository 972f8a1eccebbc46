/* Ferry's framings for C: messages cut into chunks that a link takes, and put together again.
 *
 * A session is the state of one side of one link. It does no I/O, has no clock and no threads: the caller moves the bytes and
 * says what time it is. It is used by one thread at a time; two sessions share nothing.
 *
 *     ferry_limits limits;
 *     ferry_limits_default(&limits);
 *     ferry_session *session;
 *     if (ferry_create_length_prefix(&limits, FERRY_PREFIX_VARINT, &session) != FERRY_OK) { ... }
 *     ferry_link_opened(session, now);
 *     ferry_enqueue(session, "hello", 5, &number, now);
 *
 * Then, whenever something has happened (a call of ferry_enqueue, ferry_receive, ferry_wake or ferry_link_opened, or a link
 * that takes bytes again):
 *
 *     while (ferry_next_chunk(session, chunk, sizeof chunk, &count, now) == FERRY_OK) { send(chunk, count); }
 *     while (ferry_next_event(session, &event, message, sizeof message, now) == FERRY_OK) { handle(&event, message); }
 *     if (ferry_deadline(session, &at) == FERRY_OK) { call ferry_wake at that time; }
 *
 * Memory. A session takes memory by posix_memalign and gives it back by free. What it holds is bounded by its limits: the
 * messages that wait to be sent (outbound_bytes, outbound_messages), the one that is arriving (message_bytes; with the sequenced
 * framing twice as much, and a window of chunks), and what arrived and was not fetched (inbound_bytes, of which an event takes
 * 64 besides; and what one chunk more brings, which may be as many messages as bytes).
 *
 * Errors are negative numbers. FERRY_NOTHING is none: there is no chunk, event or deadline. An error of the arguments, of a
 * buffer or of the order of calls changes nothing. One below FERRY_ERROR_FULL ends the session: every later call but
 * ferry_next_event, ferry_error_text and ferry_destroy returns it again. Only after FERRY_ERROR_TIMED_OUT and
 * FERRY_ERROR_TRUNCATED of a sequenced session may ferry_link_opened follow, and the session goes on over the new link.
 *
 * Time is in nanoseconds since any moment of the caller's choice. Time that goes back counts as standing still.
 */
#ifndef FERRY_H
#define FERRY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One side of one link. */
typedef struct ferry_session ferry_session;

/* What a call returns. The numbers never change; later versions may add some. */
enum {
    FERRY_OK = 0,
    /* There is no chunk, event or deadline; or the message cannot be taken back any more. */
    FERRY_NOTHING = 1,

    /* A pointer is null, or a number is out of its range. */
    FERRY_ERROR_ARGUMENT = -1,
    /* The buffer is too small. What it would have taken is in `count`. */
    FERRY_ERROR_BUFFER = -2,
    /* There is no link now, or there was one already. */
    FERRY_ERROR_ORDER = -3,
    /* A limit is reached. Send chunks or fetch events, then call again. */
    FERRY_ERROR_FULL = -4,

    /* The rest are FerryError's codes. */
    FERRY_ERROR_MESSAGE_TOO_LARGE = -16,
    FERRY_ERROR_NOT_TEXT = -17,
    FERRY_ERROR_CHUNK_SIZE_TOO_SMALL = -18,
    FERRY_ERROR_MALFORMED_STREAM = -19,
    FERRY_ERROR_INCOMPATIBLE_PEER = -20,
    FERRY_ERROR_PEER_LOST_STATE = -21,
    FERRY_ERROR_TRUNCATED = -22,
    FERRY_ERROR_TIMED_OUT = -23,
    FERRY_ERROR_CANCELLED_BY_PEER = -24,
    FERRY_ERROR_CONFIGURATION = -25,
    FERRY_ERROR_OTHER = -63
};

/* How the length prefix is written. */
enum {
    FERRY_PREFIX_VARINT = 0,
    FERRY_PREFIX_16_BIG = 1,
    FERRY_PREFIX_16_LITTLE = 2,
    FERRY_PREFIX_32_BIG = 3,
    FERRY_PREFIX_32_LITTLE = 4
};

/* How messages are encoded, as a sequenced session tells its peer. */
enum {
    FERRY_CODEC_UNTOLD = 0,
    FERRY_CODEC_BYTES = 1,
    FERRY_CODEC_TEXT = 2,
    FERRY_CODEC_JSON = 3,
    FERRY_CODEC_PROPERTY_LIST = 4,
    FERRY_CODEC_CBOR = 5
};

/* What one session may hold. */
typedef struct {
    /* The largest message in either direction, in bytes: at most 16 MiB. */
    uint32_t message_bytes;
    /* The most bytes and messages that wait to be sent or are being sent. At least 1 message. */
    uint32_t outbound_bytes;
    uint32_t outbound_messages;
    /* The most bytes that ferry_receive takes while events are not fetched; half of it is the sequenced framing's credit. */
    uint32_t inbound_bytes;
    /* The longest silence in the middle of a message, in nanoseconds, at least 1. */
    int64_t stall_nanoseconds;
} ferry_limits;

/* Fills in 4096, 8192, 16, 8192 and 60 seconds. */
int32_t ferry_limits_default(ferry_limits *limits);

/* Make a session; `*session` is null after an error.
 *
 * End of message: `marker_count` bytes (2 to 20) end a message; a null marker is "EOM". No chunk has more than `chunk_bytes`, 0
 * for as many as the link takes. */
int32_t ferry_create_end_of_message(
    const ferry_limits *limits, const void *marker, size_t marker_count, uint32_t chunk_bytes, ferry_session **session);
/* Length prefix: FERRY_PREFIX_VARINT or another of them. */
int32_t ferry_create_length_prefix(const ferry_limits *limits, int32_t prefix, ferry_session **session);
/* Sequenced: `identifier` must differ from those of the sessions before, also across resets: take a random number. `window` is
 * the most chunks that are out at once, 1 to 64; it costs memory of as many chunks on this side. A short message may pass a longer one: up
 * to 4 are under way at once. To keep their order, enqueue the next after FERRY_EVENT_SENT. */
int32_t ferry_create_sequenced(
    const ferry_limits *limits, uint32_t identifier, uint32_t window, ferry_session **session);
/* The same, and tells the peer how messages are encoded: FERRY_CODEC_JSON or another of them, or from 64 a number of one's own, to
 * 255. Both sides of a sequenced session must tell the same, and a channel in Swift always tells its codec. Without this
 * function it is FERRY_CODEC_UNTOLD. */
int32_t ferry_create_sequenced_for(
    const ferry_limits *limits, uint32_t identifier, uint32_t window, uint32_t codec, ferry_session **session);

/* Releases a session; null is allowed. */
void ferry_destroy(ferry_session *session);

/* A link carries this session's chunks from now on. A second link is for sequenced sessions only. */
int32_t ferry_link_opened(ferry_session *session, int64_t now);
/* The link has ended. FERRY_ERROR_TRUNCATED when a message had arrived in part and the framing cannot go on with it. */
int32_t ferry_link_closed(ferry_session *session, int64_t now);

/* Takes a copy of a message to be sent, and numbers it in `*number`, which may be null. Numbers count from 0. */
int32_t ferry_enqueue(ferry_session *session, const void *bytes, size_t count, uint64_t *number, int64_t now);
/* Takes a message back if the peer will not get it then; FERRY_NOTHING if it will, or there is no such message. */
int32_t ferry_cancel(ferry_session *session, uint64_t number, int64_t now);

/* Writes the next chunk, of at most `capacity` bytes: what the link takes at once, at least 20 for the sequenced framing and the
 * marker's size for end of message. The chunk counts as sent; a link that refuses it is given the same bytes again. */
int32_t ferry_next_chunk(ferry_session *session, void *buffer, size_t capacity, size_t *count, int64_t now);
/* Takes a chunk that arrived, as it was sent. */
int32_t ferry_receive(ferry_session *session, const void *bytes, size_t count, int64_t now);

/* What happened. */
enum {
    /* A message arrived; its bytes are in the buffer. */
    FERRY_EVENT_RECEIVED = 1,
    /* `count` bytes of message `number` have been accepted: by the link, or, sequenced, by the peer. */
    FERRY_EVENT_PROGRESS = 2,
    /* Message `number` is out: handed to the link, or, sequenced, with the peer. */
    FERRY_EVENT_SENT = 3,
    /* Message `number` cannot be sent, for `error`. The session goes on. */
    FERRY_EVENT_FAILED = 4,
    /* Something that arrived was lost, for `error`. The session goes on. */
    FERRY_EVENT_RECEIVE_FAILED = 5
};

typedef struct {
    int32_t kind;
    int32_t error;
    uint64_t number;
    size_t count;
} ferry_event;

/* Writes the next event, oldest first, and into the buffer the message that it brings. After FERRY_ERROR_BUFFER the message is
 * there still, and event->count says how large it is. A null buffer of 0 bytes will do while no message comes. */
int32_t ferry_next_event(ferry_session *session, ferry_event *event, void *buffer, size_t capacity, int64_t now);

/* When to call ferry_wake. Ask again after each other call. */
int32_t ferry_deadline(ferry_session *session, int64_t *at);
/* Says that a deadline may have come. Too early does no harm. */
int32_t ferry_wake(ferry_session *session, int64_t now);

/* Writes the text of the session's last error, or of the one that ended it, ended by a zero byte and cut to `capacity`; "" in a
 * library without texts. */
int32_t ferry_error_text(ferry_session *session, char *buffer, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
