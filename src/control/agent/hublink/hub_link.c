/* hub_link.c - see hub_link.h. */
#include "agent/hublink/hub_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/snapshot/watch_event.h"
#include "net/socket/tcp.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/member_proof.h"
#include "wire/stun.h"

/* ---- one call -------------------------------------------------------------------------------- */

#define STATUS_UNPROVEN 401

struct hub_ask {
    struct client_loop *cl;      /* pins */
    struct client_request *rq;   /* in flight */
    struct client_target target; /* its address is below */
    char address[ENDPOINT_TEXT_MAX];
    const char *method;
    char path[HUB_ASK_PATH_MAX + 1];
    json_t *body; /* owns a reference */
    unsigned timeout_ms;
    bool is_second; /* this is the second try, with the stamp that the hub takes */
    client_done_fn done;
    void *ctx; /* pins */
};

bool hub_ask_learn(
    struct member_proof_signer *signer, int result, const struct client_answer *answer)
{
    const json_t *boot = json_object_get(answer->body, "boot");
    const json_t *after = json_object_get(answer->body, "after");

    if (result != CLIENT_E_REFUSED || answer->status != STATUS_UNPROVEN ||
        json_integer_value(boot) <= 0 || !json_is_integer(after) || json_integer_value(after) < 0)
        return false;
    member_proof_signer_learn(
        signer, (uint64_t)json_integer_value(boot), (uint64_t)json_integer_value(after));
    return true;
}

static void ask_free(struct hub_ask *ask)
{
    json_decref(ask->body);
    free(ask);
}

static void on_done(void *ctx, int result, const struct client_answer *answer, const struct err *e);

static int send_it(struct hub_ask *ask, struct err *e)
{
    return client_start(ask->cl, &ask->target, ask->method, ask->path, ask->body, ask->timeout_ms,
        on_done, ask, &ask->rq, e);
}

static void on_done(void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct hub_ask *ask = ctx;

    ask->rq = NULL;
    if (!ask->is_second && hub_ask_learn(ask->target.signer, result, answer)) {
        ask->is_second = true;
        if (send_it(ask, NULL) == 0)
            return;
    }
    ask->done(ask->ctx, result, answer, e);
    ask_free(ask);
}

struct hub_ask *hub_ask_cancel(struct hub_ask *ask)
{
    if (ask) {
        ask->rq = client_cancel(ask->rq);
        ask_free(ask);
    }
    return NULL;
}

/* ---- the link -------------------------------------------------------------------------------- */

#define RETRY_FIRST       (250 * NSEC_PER_MSEC)
#define RETRY_MAX         (8 * NSEC_PER_SEC)
#define HEARTBEAT         (10 * NSEC_PER_SEC)
#define HEARTBEAT_MAX     (20 * NSEC_PER_SEC) /* as WATCH_PATH says; less than HUB_LINK_SILENCE */
#define HEARTBEAT_LATE    (1 * NSEC_PER_SEC)  /* time to travel */
#define REPORT_TIMEOUT_MS 10000

/* A hub with thousands of watches may send its heartbeats slower. One that does says so in each. */
#define WATCH_PATH     "/v1/watch?heartbeat=20"
#define WATCH_PATH_MAX 96

/* Some segments may come twice; so many without a new byte mean that what we send gets lost. */
#define REPEATED 3

/* A heartbeat that is late by this time was lost. */
#define LATE (2 * NSEC_PER_SEC)

struct hub_link {
    const char *interface;              /* pins */
    struct member_proof_signer *signer; /* pins */
    struct hub_link_listener listener;
    struct client_loop *client;    /* owns */
    struct client_request *stream; /* in flight; NULL: waiting for the timer */
    struct hub_ask *report;        /* in flight; NULL: none */
    struct hub_ask *asking;        /* hub_link_ask_heard() in flight; NULL: none */
    struct tcp_traffic traffic;    /* of the stream, when new bytes came last */
    nsec_t quiet_since;            /* time of the last line, or of the target; 0: no target */
    hub_link_heard_fn on_heard;    /* of @asking, with its ctx, which is pinned */
    void *heard_ctx;
    char address[ENDPOINT_TEXT_MAX]; /* of the hub's API; "": not known yet */
    uv_timer_t timer;                /* until the next try; with a stream: until it is too silent */
    nsec_t heartbeat;                /* longest time to the next heartbeat, as the hub said */
    uint64_t store_behind_s;         /* as the last heartbeat of this stream said */
    nsec_t retry_for;                /* length of the next wait, before its jitter */
    nsec_t line_at;                  /* time of the last line; 0: none on this stream */
    nsec_t said_at;                  /* time of the last line on any stream; 0: none yet */
    int64_t ahead_s;                 /* as hub_link_clock_ahead() has it */
    bool has_time;                   /* the hub has said what time it is */
    bool heard;                      /* as last told to the listener */
    bool is_standby;                 /* no stream is kept */
    bool needs_snapshot;             /* the last one's changes could not be used */
    bool has_learned;                /* this stream is the second try, see hub_link.h */
    bool was_unknown;                /* to the last report the hub said 401 or 403 */
    struct log_limit limit;          /* of what the hub's words can make us log */
};

static void open_stream(struct hub_link *hl, nsec_t now);
static void give_up_stream(struct hub_link *hl, nsec_t now);

static void tell_change(struct hub_link *hl, bool heard, const char *why, nsec_t now)
{
    if (hl->heard == heard)
        return;
    hl->heard = heard;
    hl->listener.on_change(hl->listener.ctx, heard, why, now);
}

static void link_on_timer(uv_timer_t *timer)
{
    struct hub_link *hl = timer->data;

    if (hl->stream)
        give_up_stream(hl, clock_now());
    else
        open_stream(hl, clock_now());
}

/* Not libcurl's own limit on silence, which wakes up each second. */
static void await_line(struct hub_link *hl)
{
    (void)uv_timer_start(&hl->timer, link_on_timer, HUB_LINK_SILENCE / NSEC_PER_MSEC, 0);
}

/* Between a half and the whole of a time that doubles, at random, so that agents spread out. */
static void schedule_retry(struct hub_link *hl)
{
    struct rng rng = rng_kernel();
    uint64_t half = (uint64_t)(hl->retry_for / 2 / NSEC_PER_MSEC);
    uint64_t wait_ms = half + rng_u64(&rng) % (half + 1);

    hl->retry_for = nsec_min(hl->retry_for * 2, RETRY_MAX);
    (void)uv_timer_start(&hl->timer, link_on_timer, wait_ms, 0);
}

static struct client_target target_of(const struct hub_link *hl)
{
    return (struct client_target){.access = CLIENT_ACCESS_OVERLAY,
        .address = hl->address,
        .interface = hl->interface,
        .signer = hl->signer};
}

/* ---- the stream ------------------------------------------------------------------------------ */

static void restart(struct hub_link *hl)
{
    hl->stream = client_cancel(hl->stream);
    hl->line_at = 0;
    schedule_retry(hl);
}

static void give_up_stream(struct hub_link *hl, nsec_t now)
{
    tell_change(hl, false, "it says nothing any more", now);
    restart(hl);
}

/* The hub's next heartbeat comes so many seconds after this one; 0: it does not say. */
static void take_heartbeat(struct hub_link *hl, uint32_t next_s)
{
    nsec_t heartbeat = nsec_min(nsec_max((nsec_t)next_s * NSEC_PER_SEC, HEARTBEAT), HEARTBEAT_MAX);

    if (heartbeat == hl->heartbeat)
        return;
    hl->heartbeat = heartbeat;
    /* While heartbeats come often, probes notice sooner than they that the hub is gone. Of a hub
     * that has so many watches only the heartbeat that is late is asked for. */
    client_set_probes(hl->stream,
        heartbeat == HEARTBEAT ? CLIENT_WATCH_PROBE_S : (unsigned)(heartbeat / NSEC_PER_SEC) + 1);
}

static void on_line(void *ctx, const char *line, size_t len)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    struct hub_link *hl = ctx;
    struct err e = ERR_NULL;
    nsec_t now = clock_now();
    int r = watch_event_decode(&ev, line, len, &e);

    hl->line_at = now;
    hl->said_at = now;
    hl->quiet_since = now;
    await_line(hl);
    if (r == 0 && ev.kind == WATCH_EVENT_SNAPSHOT)
        hl->needs_snapshot = false;
    if (r == 0 && ev.kind == WATCH_EVENT_HEARTBEAT) {
        take_heartbeat(hl, ev.next_s);
        hl->store_behind_s = ev.store_behind_s;
    }
    if (r == 0)
        r = hl->listener.on_event(hl->listener.ctx, &ev, now, &e);
    if (r < 0) {
        log_limited(&hl->limit, now, LOG_LEVEL_WARNING,
            "the hub's events cannot be used, asking for a new snapshot: %s", err_text(&e));
        hl->needs_snapshot = true;
        restart(hl);
        return;
    }
    if (ev.skips.n > 0)
        log_limited(&hl->limit, now, LOG_LEVEL_WARNING,
            "%zu of the hub's objects cannot be used and %s passed over: %s", ev.skips.n,
            ev.skips.n == 1 ? "is" : "are", err_text(&ev.skips.first));
    hl->retry_for = RETRY_FIRST;
    hl->has_learned = false;
    tell_change(hl, true, "", now);
}

static void on_stream_end(
    void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct hub_link *hl = ctx;
    nsec_t now = clock_now();

    hl->stream = NULL;
    hl->line_at = 0;
    if (!hl->has_learned && hub_ask_learn(hl->signer, result, answer)) {
        hl->has_learned = true;
        open_stream(hl, now);
        return;
    }
    hl->has_learned = false;
    tell_change(hl, false, result == 0 ? "it ended the connection" : err_text(e), now);
    schedule_retry(hl);
}

/* Of the hub's run that is known only what has changed since is asked for. */
static const char *watch_path(const struct hub_link *hl, char buf[static WATCH_PATH_MAX])
{
    const struct hub_link_listener *to = &hl->listener;
    uint64_t revision;
    uint64_t boot;

    if (hl->needs_snapshot || !to->known || !to->known(to->ctx, &boot, &revision))
        return WATCH_PATH;
    (void)snprintf(buf, WATCH_PATH_MAX, WATCH_PATH "&since=%" PRIu64 "&boot=%" PRIu64 "&anyRun=1",
        revision, boot);
    return buf;
}

static void open_stream(struct hub_link *hl, nsec_t now)
{
    struct client_target target = target_of(hl);
    char path[WATCH_PATH_MAX];
    struct err e = ERR_NULL;
    int r;

    if (hl->stream || hl->is_standby || hl->address[0] == '\0')
        return;
    hl->traffic = (struct tcp_traffic){.bytes = 0};
    hl->heartbeat = HEARTBEAT;
    hl->store_behind_s = 0;
    r = client_watch(hl->client, &target, watch_path(hl, path), HUB_LINK_SILENCE / NSEC_PER_MSEC,
        WATCH_EVENT_LINE_MAX, on_line, on_stream_end, hl, &hl->stream, &e);
    if (r == 0) {
        await_line(hl);
    } else {
        log_limited(
            &hl->limit, now, LOG_LEVEL_WARNING, "the hub cannot be asked: %s", err_text(&e));
        schedule_retry(hl);
    }
}

void hub_link_set_target(struct hub_link *hl, const struct endpoint *api, nsec_t now)
{
    char address[ENDPOINT_TEXT_MAX];

    if (strcmp(endpoint_format(api, address), hl->address) == 0)
        return;
    (void)snprintf(hl->address, sizeof(hl->address), "%s", address);
    hl->quiet_since = now;
    hl->stream = client_cancel(hl->stream);
    hl->line_at = 0;
    open_stream(hl, now);
}

void hub_link_set_standby(struct hub_link *hl, bool is_standby, nsec_t now)
{
    if (is_standby == hl->is_standby)
        return;
    hl->is_standby = is_standby;
    if (!is_standby) {
        hl->quiet_since = hl->address[0] != '\0' ? now : 0;
        hub_link_restart(hl, now);
        return;
    }
    hl->stream = client_cancel(hl->stream);
    hl->line_at = 0;
    hl->quiet_since = 0;
    hl->heard = false;
    (void)uv_timer_stop(&hl->timer);
}

void hub_link_poke(struct hub_link *hl, nsec_t now)
{
    if (hl->line_at == 0 || now - hl->line_at >= hl->heartbeat + hl->heartbeat / 2)
        hub_link_restart(hl, now);
}

void hub_link_restart(struct hub_link *hl, nsec_t now)
{
    hl->stream = client_cancel(hl->stream);
    hl->line_at = 0;
    hl->retry_for = RETRY_FIRST;
    open_stream(hl, now);
}

bool hub_link_is_heard(const struct hub_link *hl)
{
    return hl->heard;
}

bool hub_link_clock_ahead(const struct hub_link *hl, int64_t *ret_s)
{
    if (hl->has_time)
        *ret_s = hl->ahead_s;
    return hl->has_time;
}

struct hub_link_view hub_link_view(const struct hub_link *hl, nsec_t now)
{
    struct hub_link_view view = {.is_heard = hl->heard,
        .silent_for = hl->said_at > 0 ? now - hl->said_at : NSEC_NEVER,
        /* The probes and their repetitions: see take_heartbeat(). */
        .quiet_max =
            hl->heartbeat == HEARTBEAT ? HUB_LINK_QUIET_MAX : hl->heartbeat + 3 * NSEC_PER_SEC,
        .store_behind_s = hl->store_behind_s};
    struct tcp_traffic traffic;

    /* A connection that is only being made says nothing about the hub. */
    if (view.silent_for < hl->heartbeat + HEARTBEAT_LATE && hl->stream && hl->line_at != 0 &&
        client_traffic(hl->stream, &traffic))
        view.silent_for = nsec_min(view.silent_for, traffic.silent_for);
    return view;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void on_reported(
    void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct hub_link *hl = ctx;
    enum edge_report_result became = EDGE_REPORT_LOST;
    bool is_unknown =
        result == CLIENT_E_REFUSED && (answer->status == 403 || answer->status == STATUS_UNPROVEN);

    hl->report = NULL;
    if (answer->date_s != 0) {
        hl->ahead_s = clock_wall() / NSEC_PER_SEC - answer->date_s;
        hl->has_time = true;
    }
    if (result == 0)
        became = answer->status == 204 ? EDGE_REPORT_OLD : EDGE_REPORT_TAKEN;
    else if (result == CLIENT_E_REFUSED && answer->status == 409)
        became = EDGE_REPORT_AGAIN;
    /* When the hub is away the stream says so. It also says that this node was removed, but that
     * may come a moment after the hub has refused a report of who is no member any more. On a
     * machine that is too busy other requests may overtake both tries of a report, so that the hub
     * takes neither proof. */
    if (became == EDGE_REPORT_LOST && result != CLIENT_E_UNREACHABLE &&
        (!is_unknown || hl->was_unknown))
        log_limited(&hl->limit, clock_now(), LOG_LEVEL_WARNING,
            "the hub does not take this node's report: %s", err_text(e));
    hl->was_unknown = is_unknown;
    hl->listener.on_reported(
        hl->listener.ctx, became, became == EDGE_REPORT_TAKEN ? answer->body : NULL);
}

bool hub_link_report(struct hub_link *hl, json_t *body)
{
    struct err e = ERR_NULL;
    int r = -1;

    if (body && (hl->heard || hl->is_standby) && !hl->report)
        r = hub_link_ask(
            hl, "PUT", "/v1/status", body, REPORT_TIMEOUT_MS, on_reported, hl, &hl->report, &e);
    json_decref(body);
    return r == 0;
}

bool hub_link_is_reporting(const struct hub_link *hl)
{
    return hl->report != NULL;
}

/* The hub repeats segments, and no new byte comes. */
static bool is_repeating(struct hub_link *hl)
{
    struct tcp_traffic traffic;

    if (!hl->stream || !client_traffic(hl->stream, &traffic))
        return false;
    if (traffic.bytes != hl->traffic.bytes)
        hl->traffic = traffic;
    return traffic.segments - hl->traffic.segments >= REPEATED;
}

nsec_t hub_link_unheard(struct hub_link *hl, bool *ret_is_late, nsec_t now)
{
    bool is_late = hl->quiet_since != 0 && now - hl->quiet_since >= hl->heartbeat + LATE;
    bool repeats = is_repeating(hl);

    if (ret_is_late)
        *ret_is_late = is_late && !repeats;
    return repeats || is_late ? nsec_max(hl->quiet_since, 1) : 0;
}

static void on_heard_answer(
    void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct hub_link *hl = ctx;
    const json_t *heard = json_object_get(answer->body, "heard");
    const char *text = json_string_value(json_object_get(answer->body, "endpoint"));
    struct endpoint from;

    hl->asking = NULL;
    if (result != 0 || !json_is_boolean(heard))
        return;
    if (json_is_false(heard))
        hl->on_heard(hl->heard_ctx, NULL);
    else if (text && endpoint_parse(&from, text, NULL) == 0)
        hl->on_heard(hl->heard_ctx, &from);
}

bool hub_link_ask_heard(
    struct hub_link *hl, const struct stun_transaction *id, hub_link_heard_fn fn, void *ctx)
{
    char path[sizeof("/v1/heard/") + 2 * sizeof(id->b)] = "/v1/heard/";
    struct err e = ERR_NULL;

    if (!hl->heard || hl->asking)
        return false;
    hex_encode(id->b, sizeof(id->b), path + strlen(path));
    hl->on_heard = fn;
    hl->heard_ctx = ctx;
    return hub_link_ask(
               hl, "GET", path, NULL, REPORT_TIMEOUT_MS, on_heard_answer, hl, &hl->asking, &e) == 0;
}

/* ---- other calls ----------------------------------------------------------------------------- */

int hub_link_ask(struct hub_link *hl, const char *method, const char *path, json_t *body,
    unsigned timeout_ms, client_done_fn done, void *ctx, struct hub_ask **ret, struct err *e)
{
    struct hub_ask *ask;
    int r;

    if (hl->address[0] == '\0')
        return err_set(e, -ENOTCONN, "this node knows of no hub yet");
    ask = calloc(1, sizeof(*ask));
    if (!ask)
        return err_set(e, -ENOMEM, "no memory for a request");
    *ask = (struct hub_ask){.cl = hl->client,
        .target = target_of(hl),
        .method = method,
        .body = json_incref(body),
        .timeout_ms = timeout_ms,
        .done = done,
        .ctx = ctx};
    (void)snprintf(ask->address, sizeof(ask->address), "%s", hl->address);
    (void)snprintf(ask->path, sizeof(ask->path), "%s", path);
    ask->target.address = ask->address;
    r = send_it(ask, e);
    if (r != 0) {
        ask_free(ask);
        return r;
    }
    *ret = ask;
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

int hub_link_new(struct hub_link **ret, struct uv_loop_s *loop, const char *interface,
    struct member_proof_signer *signer, const struct hub_link_listener *listener, struct err *e)
{
    struct hub_link *hl = calloc(1, sizeof(*hl));
    int r;

    if (!hl)
        return err_set(e, -ENOMEM, "no memory for the connection to the hub");
    hl->interface = interface;
    hl->signer = signer;
    hl->listener = *listener;
    hl->retry_for = RETRY_FIRST;
    hl->heartbeat = HEARTBEAT;
    r = client_loop_new(&hl->client, loop, e);
    if (r < 0) {
        free(hl);
        return r;
    }
    (void)uv_timer_init(loop, &hl->timer);
    hl->timer.data = hl;
    *ret = hl;
    return 0;
}

static void link_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct hub_link *hub_link_free(struct hub_link *hl)
{
    if (hl) {
        hl->report = hub_ask_cancel(hl->report);
        hl->asking = hub_ask_cancel(hl->asking);
        hl->client = client_loop_free(hl->client);
        uv_close((uv_handle_t *)&hl->timer, link_on_closed);
    }
    return NULL;
}
