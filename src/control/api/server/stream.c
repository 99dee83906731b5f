/* stream.c - see stream.h. */
#include "stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

/* ==== lines, plain and packed ================================================================ */

/* zlib's own levels, and the powers of two of its tables. A short text needs no large ones, and to
 * clear them would take longer than to pack it. */
#define PACK_LEVEL       6
#define SHORT_TEXT       4096
#define SHORT_WINDOW     12
#define SHORT_MEMORY     5
#define LONG_WINDOW      15
#define LONG_MEMORY      8
#define SYNC_MARK        16 /* more than the empty block at the end takes */
#define EMPTY_LAST_BLOCK "\x03\x00"

static struct line *alloc(size_t len)
{
    struct line *l = malloc(sizeof(*l) + len);

    if (l)
        *l = (struct line){.refs = 1, .len = len};
    return l;
}

static struct line *make(const char *text, size_t len, bool is_part)
{
    struct line *l = alloc(is_part ? len : len + 1);

    if (!l)
        return NULL;
    l->is_part = is_part;
    memcpy(l->text, text, len);
    if (!is_part)
        l->text[len] = '\n';
    return l;
}

struct line *line_new(const char *text, size_t len)
{
    return make(text, len, false);
}

struct line *line_new_part(const char *text, size_t len)
{
    return make(text, len, true);
}

struct line *line_ref(struct line *l)
{
    l->refs++;
    return l;
}

struct line *line_unref(struct line *l)
{
    if (!l || --l->refs > 0)
        return NULL;
    (void)line_unref(l->packed);
    free(l);
    return NULL;
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Packs all of @l at once. NULL: no memory. */
static struct line *pack(z_stream *z, const struct line *l)
{
    size_t cap = deflateBound(z, l->len) + SYNC_MARK;
    struct line *packed = alloc(cap);
    struct line *smaller;

    if (!packed)
        return NULL;
    z->next_in = (Bytef *)l->text;
    z->avail_in = (uInt)l->len;
    z->next_out = (Bytef *)packed->text;
    z->avail_out = (uInt)cap;
    /* There is room for everything, so it ends at a byte, and nothing of it is left in zlib. */
    (void)deflate(z, Z_SYNC_FLUSH);
    packed->len = cap - z->avail_out;
    smaller = realloc(packed, sizeof(*packed) + packed->len);
    return smaller ? smaller : packed;
}

struct line *line_packed(struct line *l)
{
    bool is_short = l->len < SHORT_TEXT;
    z_stream z = {.zalloc = NULL};

    if (l->packed)
        return l->packed;
    /* A negative window means that there is no header and no checksum (RFC 1951 alone). */
    if (deflateInit2(&z, PACK_LEVEL, Z_DEFLATED, is_short ? -SHORT_WINDOW : -LONG_WINDOW,
            is_short ? SHORT_MEMORY : LONG_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    l->packed = pack(&z, l);
    (void)deflateEnd(&z);
    if (l->packed) {
        l->packed->is_part = l->is_part;
        l->packed->n_plain = l->len;
        l->packed->checksum =
            (uint32_t)adler32(LINE_CHECKSUM_NONE, (const Bytef *)l->text, (uInt)l->len);
    }
    return l->packed;
}

/* RFC 1950 section 2.2: deflate with a window of 32 KiB, the default level, no dictionary. */
void line_packed_head(char buf[static LINE_PACKED_HEAD])
{
    memcpy(buf, "\x78\x9c", LINE_PACKED_HEAD);
}

void line_packed_end(uint32_t checksum, char buf[static LINE_PACKED_END])
{
    memcpy(buf, EMPTY_LAST_BLOCK, 2);
    for (int i = 0; i < 4; i++)
        buf[2 + i] = (char)(checksum >> (24 - 8 * i));
}

uint32_t line_checksum_add(uint32_t checksum, const struct line *packed)
{
    return (uint32_t)adler32_combine(checksum, packed->checksum, (z_off_t)packed->n_plain);
}

/* ---- who takes it --------------------------------------------------------------------------- */

#define BLANKS " \t"

/* Is what comes behind a coding's name a weight of 0, as ";q=0.0" is? */
static bool is_refused(const char *p, const char *end)
{
    p += strspn(p, BLANKS ";");
    if (end - p < 3 || strncasecmp(p, "q=0", 3) != 0)
        return false;
    p += 3;
    return p + strspn(p, ".0" BLANKS) >= end;
}

bool line_accepts_packed(const char *accept_encoding)
{
    static const char name[] = "deflate";
    const char *p = accept_encoding;

    while (p && *p) {
        const char *end = p + strcspn(p, ",");
        const char *word = p + strspn(p, BLANKS);
        size_t len = strcspn(word, ",;" BLANKS);

        if (len == sizeof(name) - 1 && strncasecmp(word, name, len) == 0)
            return !is_refused(word + len, end);
        p = *end ? end + 1 : end;
    }
    return false;
}

/* ==== a stream of lines ====================================================================== */

/* Lines that an empty queue keeps room for. */
#define LINES_KEPT 8

void stream_init(struct stream *s, void (*on_drained)(struct stream *, nsec_t now),
    void (*on_closed)(struct stream *))
{
    *s = (struct stream){.type = "application/x-ndjson",
        .on_drained = on_drained,
        .on_closed = on_closed,
        .checksum = LINE_CHECKSUM_NONE};
}

static struct line **slot(struct stream *s, size_t i)
{
    return &s->queue[(s->first + i) & (s->cap - 1)];
}

void stream_deinit(struct stream *s)
{
    for (size_t i = 0; i < s->n; i++)
        line_unref(*slot(s, i));
    free(s->queue);
    s->queue = NULL;
    s->cap = 0;
    s->n = 0;
    s->n_free = 0;
    s->bytes = 0;
    s->sent = 0;
}

static bool grow(struct stream *s)
{
    size_t cap = s->cap ? 2 * s->cap : 4;
    struct line **queue = malloc(cap * sizeof(struct line *));

    if (!queue)
        return false;
    for (size_t i = 0; i < s->n; i++)
        queue[i] = *slot(s, i);
    free(s->queue);
    s->queue = queue;
    s->cap = cap;
    s->first = 0;
    return true;
}

/* There is room for it in the array. */
static void append(struct stream *s, struct line *l)
{
    *slot(s, s->n) = line_ref(l);
    s->n++;
}

static void note_pushed(struct stream *s, bool was_empty, nsec_t now)
{
    if (was_empty)
        s->moved_at = now;
    if (s->wake)
        s->wake(s);
}

/* @l as this stream sends it; NULL: no memory. */
static struct line *as_sent(const struct stream *s, struct line *l)
{
    return s->packing == STREAM_PLAIN ? l : line_packed(l);
}

bool stream_push(struct stream *s, struct line *l, nsec_t now)
{
    bool was_empty = s->n == 0;

    if (s->ended || s->n - s->n_free >= STREAM_LINES_MAX || s->bytes >= STREAM_BYTES_MAX ||
        (s->n == s->cap && !grow(s)))
        return false;
    l = as_sent(s, l);
    if (!l)
        return false;
    append(s, l);
    s->bytes += l->len;
    note_pushed(s, was_empty, now);
    return true;
}

bool stream_push_whole(struct stream *s, struct line *const *parts, size_t n_parts, nsec_t now)
{
    assert(s->n == 0);
    while (s->cap < n_parts)
        if (!grow(s))
            return false;
    /* Once all are packed nothing can fail. */
    for (size_t i = 0; i < n_parts; i++)
        if (s->ended || !as_sent(s, parts[i]))
            return false;
    for (size_t i = 0; i < n_parts; i++)
        append(s, as_sent(s, parts[i]));
    s->n_free = n_parts;
    note_pushed(s, true, now);
    return true;
}

bool stream_pack(struct stream *s)
{
    assert(s->sent == 0 && s->packing == STREAM_PLAIN);
    for (size_t i = 0; i < s->n; i++)
        if (!line_packed(*slot(s, i)))
            return false;
    for (size_t i = 0; i < s->n; i++) {
        struct line *plain = *slot(s, i);

        *slot(s, i) = line_ref(line_packed(plain));
        if (i >= s->n_free)
            s->bytes -= plain->len - line_packed(plain)->len;
        (void)line_unref(plain);
    }
    s->packing = STREAM_PACKED_HEAD;
    return true;
}

void stream_clear(struct stream *s)
{
    size_t keep = 0;

    if (s->sent > 0 || s->is_inside)
        while (keep < s->n && (*slot(s, keep++))->is_part)
            continue;
    while (s->n > keep) {
        struct line *last = *slot(s, s->n - 1);

        if (s->n > s->n_free)
            s->bytes -= last->len;
        else
            s->n_free--;
        s->n--;
        line_unref(last);
    }
}

void stream_end(struct stream *s)
{
    s->ended = true;
    if (s->wake)
        s->wake(s);
}

void stream_abort(struct stream *s)
{
    s->aborted = true;
    if (s->wake)
        s->wake(s);
}

void stream_check(struct stream *s)
{
    if (s->check)
        s->check(s);
}

bool stream_is_answered(struct stream *s, nsec_t within)
{
    return !s->is_answered || s->is_answered(s, within);
}

/* The first line is out. */
static void end_line(struct stream *s)
{
    struct line *l = *slot(s, 0);

    s->is_inside = l->is_part;
    if (s->packing != STREAM_PLAIN)
        s->checksum = line_checksum_add(s->checksum, l);
    if (s->n_free > 0)
        s->n_free--;
    line_unref(l);
    s->first = (s->first + 1) & (s->cap - 1);
    s->n--;
    s->sent = 0;
}

static size_t take_lines(struct stream *s, char *buf, size_t cap)
{
    size_t out = 0;

    while (s->n > 0 && out < cap) {
        const struct line *l = *slot(s, 0);
        size_t n = l->len - s->sent < cap - out ? l->len - s->sent : cap - out;

        memcpy(buf + out, l->text + s->sent, n);
        out += n;
        s->sent += n;
        if (s->n_free == 0)
            s->bytes -= n;
        if (s->sent == l->len)
            end_line(s);
    }
    return out;
}

/* What comes before the lines, or behind them, if it is time for it. */
static size_t take_frame(struct stream *s, char *buf)
{
    if (s->packing == STREAM_PACKED_HEAD && (s->n > 0 || s->ended)) {
        line_packed_head(buf);
        s->packing = STREAM_PACKED_LINES;
        return LINE_PACKED_HEAD;
    }
    if (s->packing == STREAM_PACKED_LINES && s->n == 0 && s->ended) {
        line_packed_end(s->checksum, buf);
        s->packing = STREAM_PACKED_ENDED;
        return LINE_PACKED_END;
    }
    return 0;
}

size_t stream_take(struct stream *s, char *buf, size_t cap, nsec_t now)
{
    size_t out = cap >= STREAM_TAKE_MIN ? take_frame(s, buf) : 0;

    out += take_lines(s, buf + out, cap - out);
    /* Thousands of streams once had a long queue, for their snapshots, and have an empty one since.
     */
    if (s->n == 0 && s->cap > LINES_KEPT) {
        free(s->queue);
        s->queue = NULL;
        s->cap = 0;
        s->first = 0;
    }
    if (out > 0)
        s->moved_at = now;
    return out;
}

bool stream_is_stalled(const struct stream *s, nsec_t now)
{
    return s->n > 0 && now - s->moved_at > STREAM_STALL_NS;
}
