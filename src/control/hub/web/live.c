/* live.c - see live.h. */
#include "hub/web/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"
#include "base/parse.h"
#include "base/text.h"
#include "hub/model/model.h"
#include "hub/web/live_rows.h"
#include "os/clock.h"

/* A network that a page shows. */
struct live_network {
    struct keyed keyed; /* its name */
    struct live_rows rows;
    nsec_t due_at;  /* when they are to be made anew; 0: they were not made yet */
    nsec_t used_at; /* when a page was open last */
};

struct live_stream {
    struct stream stream;
    struct list link;  /* in the live's */
    struct live *live; /* pins */
    char network[NAME_MAX_LEN + 1];
    uint64_t session; /* 0: none */
    uint64_t cursor;  /* it knows all up to there; 0: nothing */
    nsec_t opened_at;
    nsec_t sent_at; /* when it was sent something last */
};

void live_init(struct live *live)
{
    *live = (struct live){.n_streams = 0};
    list_init(&live->streams);
}

static void free_network(struct live *live, struct live_network *n)
{
    live_rows_deinit(&n->rows);
    keys_free(&live->networks, &n->keyed);
}

void live_deinit(struct live *live)
{
    while (live->networks.n > 0)
        free_network(live,
            container_of(live->networks.items[live->networks.n - 1], struct live_network, keyed));
    keys_deinit(&live->networks);
}

/* ---- what there is to tell ------------------------------------------------------------------- */

static void make_rows(
    struct live *live, struct live_network *n, const struct model_network *net, nsec_t now)
{
    nsec_t begun_at = clock_now();

    live_rows_begin(&n->rows, live->revision + 1);
    live_view_make(&n->rows, &live->sources, net, now, clock_wall_s());
    if (live_rows_end(&n->rows))
        live->revision++;
    n->due_at = now + nsec_max(LIVE_EACH, LIVE_SHARE * (clock_now() - begun_at));
}

/* Lends the network's rows, as they were made last; NULL: no memory. */
static struct live_network *open_network(
    struct live *live, const struct model_network *net, nsec_t now)
{
    struct live_network *n = keys_open(&live->networks, net->spec.meta.name, sizeof(*n));

    if (!n)
        return NULL;
    if (n->due_at == 0) {
        /* What is asked for from before this is not known. */
        live_rows_init(&n->rows, ++live->revision);
        make_rows(live, n, net, now);
    }
    n->used_at = now;
    return n;
}

/* ---- telling it ------------------------------------------------------------------------------ */

static struct live_stream *of_stream(struct stream *st)
{
    return container_of(st, struct live_stream, stream);
}

static void push(struct live_stream *s, const char *text, size_t len, nsec_t now)
{
    /* The newline behind it is the empty line that ends an event. */
    struct line *line = line_new(text, len);

    if (!line || !stream_push_whole(&s->stream, &line, 1, now))
        stream_abort(&s->stream);
    (void)line_unref(line);
    s->sent_at = now;
}

/* Send what has changed since its cursor, once all that was before is taken. */
static void send_changes(struct live_stream *s, nsec_t now)
{
    const struct live_network *n = keys_find(&s->live->networks, s->network);
    struct str text = STR_NULL;
    size_t len;
    char *event;

    if (!n || s->stream.n > 0 || s->stream.ended || s->cursor == n->rows.revision)
        return;
    str_addf(&text, "id: %" PRIu64 ".%" PRIu64 "\ndata: ", s->live->model->boot, n->rows.revision);
    live_rows_read(&n->rows, s->cursor, &text);
    str_add(&text, "\n");
    event = str_take(&text, &len);
    if (event)
        push(s, event, len, now);
    else
        stream_abort(&s->stream);
    s->cursor = n->rows.revision;
    free(event);
}

static void on_drained(struct stream *st, nsec_t now)
{
    send_changes(of_stream(st), now);
}

static void on_closed(struct stream *st)
{
    struct live_stream *s = of_stream(st);

    list_remove(&s->link);
    s->live->n_streams--;
    stream_deinit(st);
    free(s);
}

bool live_id_read(const char *text, uint64_t *ret_run, uint64_t *ret_number)
{
    const char *dot = strchr(text, '.');
    char run[24];

    if (!dot || (size_t)(dot - text) >= sizeof(run))
        return false;
    memcpy(run, text, (size_t)(dot - text));
    run[dot - text] = '\0';
    return parse_u64(ret_run, run, 1, UINT64_MAX, "run", NULL) == 0 &&
           parse_u64(ret_number, dot + 1, 1, UINT64_MAX, "number", NULL) == 0;
}

/* From where a stream goes on; 0: from the beginning. */
static uint64_t cursor_of(const struct live *live, const struct live_network *n, const char *text)
{
    uint64_t run;
    uint64_t number;

    if (!text || !live_id_read(text, &run, &number) || run != live->model->boot ||
        number < n->rows.forgotten || number > n->rows.revision)
        return 0;
    return number;
}

static unsigned count_of(const struct live *live, uint64_t session)
{
    const struct live_stream *s;
    unsigned n = 0;

    list_foreach(s, &live->streams, link)
        n += s->session == session;
    return n;
}

struct stream *live_open(struct live *live, const struct model_network *net,
    const struct live_asker *asker, nsec_t now, struct err *e)
{
    struct live_network *n;
    struct live_stream *s;

    if (live->n_streams >= LIVE_STREAMS_MAX) {
        (void)err_set(
            e, -EBUSY, "%u pages are open, as many as a hub tells: close one", LIVE_STREAMS_MAX);
        return NULL;
    }
    if (asker->session != 0 && count_of(live, asker->session) >= LIVE_STREAMS_EACH) {
        (void)err_set(e, -EBUSY, "%u pages are open with this login: close one", LIVE_STREAMS_EACH);
        return NULL;
    }
    n = open_network(live, net, now);
    s = n ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        (void)err_set(e, -ENOMEM, "no memory for a page");
        return NULL;
    }
    stream_init(&s->stream, on_drained, on_closed);
    s->stream.type = "text/event-stream";
    s->live = live;
    (void)snprintf(s->network, sizeof(s->network), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
    s->session = asker->session;
    s->cursor = cursor_of(live, n, asker->last_event);
    s->opened_at = now;
    live->n_resumed += s->cursor > 0;
    list_add_tail(&live->streams, &s->link);
    live->n_streams++;
    if (s->cursor == n->rows.revision)
        push(s, ":\n", 2, now);
    else
        send_changes(s, now);
    return &s->stream;
}

/* ---- the clock ------------------------------------------------------------------------------ */

static bool is_over(const struct live_stream *s, nsec_t now)
{
    if (!model_find_network(s->live->model, s->network))
        return true;
    return s->session == 0 ? now - s->opened_at > LIVE_LIFE
                           : !s->live->holds(s->live->sources.ctx, s->session, now);
}

static void tell(struct live_stream *s, nsec_t now)
{
    if (s->stream.ended)
        return;
    if (is_over(s, now)) {
        stream_end(&s->stream);
        return;
    }
    /* A page that was closed does not count for long. */
    stream_check(&s->stream);
    send_changes(s, now);
    /* A comment, which says that the hub is there. */
    if (now - s->sent_at >= LIVE_SILENCE && s->stream.n == 0)
        push(s, ":\n", 2, now);
}

void live_tick(struct live *live, nsec_t now)
{
    struct live_stream *s;
    struct live_stream *tmp;

    list_foreach(s, &live->streams, link) {
        struct live_network *n = keys_find(&live->networks, s->network);
        const struct model_network *net = model_find_network(live->model, s->network);

        if (!n || !net)
            continue;
        n->used_at = now;
        if (n->due_at <= now)
            make_rows(live, n, net, now);
    }
    list_foreach_safe(s, tmp, &live->streams, link)
        tell(s, now);
    for (size_t i = live->networks.n; i > 0; i--) {
        struct live_network *n =
            container_of(live->networks.items[i - 1], struct live_network, keyed);

        if (now - n->used_at > LIVE_KEPT)
            free_network(live, n);
    }
}

void live_end_session(struct live *live, uint64_t session)
{
    struct live_stream *s;
    struct live_stream *tmp;

    list_foreach_safe(s, tmp, &live->streams, link)
        if (session != 0 && s->session == session)
            stream_end(&s->stream);
}
