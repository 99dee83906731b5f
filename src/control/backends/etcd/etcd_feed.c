/* etcd_feed.c - see etcd_feed.h. */
#include "etcd_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"

/* Longest line: a fragment is about 1.5 MiB, a single value at most ETCD_RAW_MAX; in base64. */
#define LINE_MAX_BYTES (8u << 20)

struct etcd_revision *etcd_revision_free(struct etcd_revision *rev)
{
    if (!rev)
        return NULL;
    etcd_kvs_deinit(&rev->events);
    free(rev);
    return NULL;
}

void etcd_feed_init(struct etcd_feed *f, struct etcd_client *client, uint64_t last)
{
    *f = (struct etcd_feed){.client = client, .last = last};
    list_init(&f->revisions);
}

static void stop(struct etcd_feed *f)
{
    f->stream = remote_http_close(f->stream);
    etcd_kvs_deinit(&f->parts);
    f->is_broken = false;
}

struct etcd_revision *etcd_feed_next(struct etcd_feed *f)
{
    return list_first(&f->revisions, struct etcd_revision, link);
}

static size_t bytes_of(const struct etcd_kvs *events)
{
    size_t bytes = 0;

    for (size_t i = 0; i < events->n; i++)
        bytes += events->items[i].len;
    return bytes;
}

void etcd_feed_drop(struct etcd_feed *f)
{
    struct etcd_revision *rev = etcd_feed_next(f);

    f->bytes -= bytes_of(&rev->events);
    list_remove(&rev->link);
    etcd_revision_free(rev);
}

void etcd_feed_deinit(struct etcd_feed *f)
{
    stop(f);
    while (etcd_feed_next(f))
        etcd_feed_drop(f);
}

void etcd_feed_restart(struct etcd_feed *f, uint64_t last)
{
    etcd_feed_deinit(f);
    f->last = last;
    f->compacted = 0;
    f->open_at = 0;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void break_off(struct etcd_feed *f)
{
    f->is_broken = true;
}

/* Move the events of @from behind those of @to. */
static int append(struct etcd_kvs *to, struct etcd_kvs *from)
{
    struct etcd_kv *items = realloc(to->items, (to->n + from->n + 1) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    to->items = items;
    if (from->n > 0)
        memcpy(to->items + to->n, from->items, from->n * sizeof(*items));
    to->n += from->n;
    free(from->items);
    *from = (struct etcd_kvs)ETCD_KVS_NULL;
    return 0;
}

/* Queue @n events, all of one revision, which are taken. */
static int queue(struct etcd_feed *f, struct etcd_kv *events, size_t n)
{
    struct etcd_revision *rev = calloc(1, sizeof(*rev));

    if (rev)
        rev->events.items = calloc(n, sizeof(*events));
    if (!rev || !rev->events.items) {
        free(rev);
        return -ENOMEM;
    }
    memcpy(rev->events.items, events, n * sizeof(*events));
    memset(events, 0, n * sizeof(*events));
    rev->events.n = n;
    rev->number = rev->events.items[0].mod;
    list_init(&rev->link);
    list_add_tail(&f->revisions, &rev->link);
    f->bytes += bytes_of(&rev->events);
    f->last = rev->number;
    return 0;
}

/* The events of whole revisions. What has come before is dropped. */
static int take_events(struct etcd_feed *f, struct etcd_kvs *events)
{
    size_t i = 0;
    int r = 0;

    while (r == 0 && i < events->n) {
        uint64_t number = events->items[i].mod;
        size_t n = 1;

        while (i + n < events->n && events->items[i + n].mod == number)
            n++;
        if (number > f->last)
            r = queue(f, &events->items[i], n);
        i += n;
    }
    return r;
}

static void on_line(void *ctx, const char *line, size_t len)
{
    struct etcd_feed *f = ctx;
    struct etcd_watch_line l;
    int r;

    if (f->is_broken)
        return;
    f->heard_at = clock_now();
    r = etcd_watch_line_decode(line, len, f->client->prefix, &l, &f->e);
    if (r != 0) {
        break_off(f);
        return;
    }
    r = append(&f->parts, &l.events);
    if (r == 0 && !l.is_fragment) {
        r = take_events(f, &f->parts);
        etcd_kvs_deinit(&f->parts);
    }
    etcd_kvs_deinit(&l.events);
    if (l.is_over)
        f->compacted = l.compacted;
    else if (r == 0)
        f->backoff.n = 0;
    if (r != 0 || l.is_over || f->bytes > ETCD_FEED_BYTES_MAX)
        break_off(f);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void open_stream(struct etcd_feed *f, nsec_t now)
{
    struct str body = STR_NULL;
    struct remote_http_request rq = {.method = "POST", .path = "/v3/watch", .max = LINE_MAX_BYTES};
    int r = -ENOMEM;

    etcd_add_watch(&body, f->client->prefix, "i", "t", f->last + 1);
    rq.body = body.text;
    rq.body_len = body.len;
    f->server = remote_http_server(f->client->http);
    if (!body.failed)
        r = remote_http_open(f->client->http, &rq, on_line, f, &f->stream, &f->e);
    str_deinit(&body);
    f->heard_at = now;
    if (r != 0)
        f->open_at = now + remote_http_backoff_next(&f->backoff, &f->client->rng) * NSEC_PER_MSEC;
}

void etcd_feed_tend(struct etcd_feed *f, nsec_t now)
{
    struct remote_http_end end;
    bool is_turned = f->stream && f->server != remote_http_server(f->client->http);
    bool has_ended = f->stream && remote_http_has_ended(f->stream, &end, &f->e);

    if (f->stream && (has_ended || f->is_broken || is_turned)) {
        bool is_full = f->bytes > ETCD_FEED_BYTES_MAX;

        stop(f);
        if (!is_turned && !is_full && !f->compacted) {
            remote_http_turn(f->client->http);
            f->open_at =
                now + remote_http_backoff_next(&f->backoff, &f->client->rng) * NSEC_PER_MSEC;
        }
    }
    if (f->stream || f->compacted || now < f->open_at ||
        (f->bytes > 0 && f->bytes > ETCD_FEED_BYTES_MAX / 2))
        return;
    open_stream(f, now);
}

bool etcd_feed_is_silent(const struct etcd_feed *f, nsec_t now, nsec_t for_ns)
{
    return f->stream && now - f->heard_at >= for_ns;
}
