/* stream.c - see stream.h. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

static struct line *make(const char *text, size_t len, bool is_part)
{
    struct line *l = malloc(sizeof(*l) + len + 1);

    if (!l)
        return NULL;
    l->refs = 1;
    l->is_part = is_part;
    l->len = is_part ? len : len + 1;
    memcpy(l->text, text, len);
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
    if (l && --l->refs == 0)
        free(l);
    return NULL;
}

void stream_init(
    struct stream *s, void (*on_drained)(struct stream *), void (*on_closed)(struct stream *))
{
    *s = (struct stream){.on_drained = on_drained, .on_closed = on_closed};
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

bool stream_push(struct stream *s, struct line *l, nsec_t now)
{
    if (s->ended || s->n >= STREAM_LINES_MAX || s->bytes >= STREAM_BYTES_MAX ||
        (s->n == s->cap && !grow(s)))
        return false;
    if (s->n == 0)
        s->moved_at = now;
    *slot(s, s->n) = line_ref(l);
    s->n++;
    s->bytes += l->len;
    if (s->wake)
        s->wake(s);
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

        s->bytes -= last->len;
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

size_t stream_take(struct stream *s, char *buf, size_t cap, nsec_t now)
{
    size_t out = 0;

    while (s->n > 0 && out < cap) {
        struct line *l = *slot(s, 0);
        size_t n = l->len - s->sent < cap - out ? l->len - s->sent : cap - out;

        memcpy(buf + out, l->text + s->sent, n);
        out += n;
        s->sent += n;
        s->bytes -= n;
        if (s->sent < l->len)
            break;
        s->is_inside = l->is_part;
        line_unref(l);
        s->first = (s->first + 1) & (s->cap - 1);
        s->n--;
        s->sent = 0;
    }
    if (out > 0)
        s->moved_at = now;
    return out;
}

bool stream_is_stalled(const struct stream *s, nsec_t now)
{
    return s->n > 0 && now - s->moved_at > STREAM_STALL_NS;
}
