/* line.c - see line.h. */
#include "line.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

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
