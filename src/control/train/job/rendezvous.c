/* rendezvous.c - see rendezvous.h. */
#include "train/job/rendezvous.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/client/client.h"
#include "backends/remote/remote_http.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "net/address/sockaddr.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/interrupt.h"

/* Longest result, bytes. The store keeps 256 KiB of a key (rendezvous/etcd2/etcd2_node.h). */
#define AGREE_TEXT_MAX (200u << 10)

/* ==== the job's store at the hub ============================================================= */

/*
 * Asks a job's store at the hub: the v2 keys API of etcd.
 *
 * What the nodes of a job agree on and their ranks are keys of it, of one run
 * of the job each.
 *
 * Threads: one at a time for each store. All but job_store_close() block.
 */

/* HTTP statuses of its answers. */
#define JOB_STORE_OK     200
#define JOB_STORE_MADE   201
#define JOB_STORE_ABSENT 404
#define JOB_STORE_EXISTS 412 /* prevExist=false was asked for, and it is there */

/** Room for a path, bytes. */
#define JOB_STORE_PATH_MAX 256

struct job_store {
    struct remote_http *http; /* owns */
    char folder[160];         /* path of the run's keys */
};

#define CONNECT_MS 3000
#define TIMEOUT_MS 10000
/* Bytes: 65,536 nodes of some 100, or one value in JSON's escapes. */
#define ANSWER_MAX (8u << 20)

#define FORM "application/x-www-form-urlencoded"

/* @m: where the job meets, and its run. 0; or negative errno with words. */
static int job_store_open(struct job_store *ret, const struct env_rendezvous *m, struct err *e)
{
    char server[sizeof(m->etcd) + 8];
    struct remote_http_config config = {
        .servers = {server}, .n_servers = 1, .connect_ms = CONNECT_MS};
    struct job_store s = {0};
    int r;

    if (m->etcd[0] == '\0')
        return err_set(e, -ENOTSUP, "the hub keeps no keys for the nodes of a job");
    (void)snprintf(server, sizeof(server), "http://%s", m->etcd);
    (void)snprintf(s.folder, sizeof(s.folder), "/v2/keys/weft/%s", m->id);
    r = remote_http_new(&s.http, &config, e);
    if (r == 0)
        *ret = s;
    return r;
}

/* Idempotent. */
static void job_store_close(struct job_store *s)
{
    s->http = remote_http_free(s->http);
}

/*
 * One request
 * @what:	of the run's keys, such as "plan", or "ranks?sorted=true"
 * @form:	the fields, encoded; NULL: none
 * @ret:	gives the answer's object "node", NULL if it has none; may be NULL
 *
 * Return: an HTTP status; or negative errno with words.
 */
static int job_store_ask(struct job_store *s, const char *method, const char *what,
    const char *form, json_t **ret, struct err *e)
{
    char path[JOB_STORE_PATH_MAX];
    struct remote_http_request rq = {.method = method,
        .path = path,
        .body = form,
        .body_len = form ? strlen(form) : 0,
        .content_type = FORM,
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    _cleanup_(remote_http_answer_deinit) struct remote_http_answer answer = REMOTE_HTTP_ANSWER_NULL;
    json_auto_t *json = NULL;

    (void)snprintf(path, sizeof(path), "%s/%s", s->folder, what);
    if (remote_http_call(s->http, &rq, &answer, e) != 0) {
        (void)err_prefix(e, "the job's store at the hub");
        return -EIO;
    }
    json = ret ? json_loadb(answer.body, answer.len, 0, NULL) : NULL;
    if (ret)
        *ret = json_incref(json_object_get(json, "node"));
    return answer.status;
}

/* An answer that was not expected. Return: -EPROTO, with words. */
static int job_store_refuse(int status, struct err *e)
{
    return err_set(e, -EPROTO, "the job's store at the hub answers with status %d", status);
}

/* ==== where a job meets ====================================================================== */

#define STATUS_OK        200
#define STATUS_BAD       400
#define STATUS_NOT_FOUND 404
#define STATUS_NO_METHOD 405
#define STATUS_CONFLICT  409

/* HTTP status of the agent's answer when the hub does not answer the agent. */
#define STATUS_HUB_AWAY 502

/* HTTP status of a hub that does not serve the network's jobs, while no other one does either. */
#define STATUS_NOT_SERVED 421

#define ASK_TIMEOUT_MS  10000
#define TAKE_OVER_MS    20000 /* another hub takes the jobs over within about 8 s */
#define END_TIMEOUT_MS  2000
#define LOOK_TIMEOUT_MS 3000
#define LOOK_PAUSE_MS   500

/* Copies a text field. The text is empty when the field is missing. False when it is too long. */
static bool take_text(const json_t *obj, const char *field, char *buf, size_t cap)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return snprintf(buf, cap, "%s", text ? text : "") < (int)cap;
}

/* The name of a run, which people see and programs get. */
static bool take_run(const json_t *obj, char *buf, size_t cap)
{
    return take_text(obj, "run", buf, cap) &&
           buf[strspn(buf, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0';
}

/* @what: of the job. @body: taken; NULL: none. */
static int call(const char *socket_path, const char *job, const char *what, const char *method,
    json_t *body, unsigned timeout_ms, struct client_answer *answer, struct err *e)
{
    char users[UNIX_SOCKET_CHOICE_CAP];
    struct client_target target = {
        .access = CLIENT_ACCESS_UNIX, .address = unix_socket_choose(socket_path, users)};
    json_auto_t *owned = body;
    char path[NAME_MAX_LEN + 32];

    (void)snprintf(path, sizeof(path), "/v1/jobs/%.*s/%s", NAME_MAX_LEN, job, what);
    return client_call(&target, method, path, owned, timeout_ms, answer, e);
}

/* About where the job meets. @body: as call() has it. */
static int ask(const char *socket_path, const char *job, const char *method, json_t *body,
    unsigned timeout_ms, struct client_answer *answer, struct err *e)
{
    return call(socket_path, job, "rendezvous", method, body, timeout_ms, answer, e);
}

static int arrive(const char *socket_path, const char *job, struct rendezvous_arrival *a,
    struct client_answer *answer, struct err *e)
{
    json_t *dry = a->is_dry_run ? json_true() : NULL;
    json_t *body = json_pack("{s:s*, s:s*, s:o*, s:o*}", "brokenRun", a->broken, "nnodes",
        a->nnodes, "dryRun", dry, "isolated", a->is_isolated ? json_true() : NULL);
    int r = ask(socket_path, job, "POST", body, ASK_TIMEOUT_MS, answer, e);

    if (r != CLIENT_E_REFUSED || answer->status != STATUS_BAD || (!a->nnodes && !a->is_dry_run) ||
        a->is_isolated)
        return r;
    /* A hub of before knows neither a number of nodes nor a dry run; a job that is there it shows.
     */
    client_answer_deinit(answer);
    if (a->is_dry_run)
        return ask(socket_path, job, "GET", NULL, ASK_TIMEOUT_MS, answer, e);
    a->nnodes = NULL;
    return arrive(socket_path, job, a, answer, e);
}

int rendezvous_ask(const char *socket_path, const char *job, const struct rendezvous_arrival *a,
    struct env_rendezvous *ret, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    nsec_t deadline = clock_now() + (nsec_t)TAKE_OVER_MS * NSEC_PER_MSEC;
    struct rendezvous_arrival arrival = *a;
    struct env_rendezvous m = {0};
    int r = arrive(socket_path, job, &arrival, &answer, e);

    /* While no hub serves the jobs, ask again until another one does. */
    while (r == CLIENT_E_REFUSED && answer.status == STATUS_NOT_SERVED && clock_now() < deadline) {
        client_answer_deinit(&answer);
        (void)poll(NULL, 0, LOOK_PAUSE_MS);
        r = arrive(socket_path, job, &arrival, &answer, e);
    }
    if (r == CLIENT_E_REFUSED && answer.status == STATUS_NOT_FOUND && a->is_dry_run)
        return err_set(
            e, r, "the hub is of a version that says only of a job that is there where it meets");
    if (r == CLIENT_E_REFUSED && answer.status == STATUS_NOT_FOUND)
        return err_set(e, r, "the hub is of a version without a rendezvous");
    if (r != 0) {
        bool is_away = r == CLIENT_E_REFUSED &&
                       (answer.status == STATUS_HUB_AWAY || answer.status == STATUS_NOT_SERVED);

        if (r == CLIENT_E_REFUSED && answer.status == STATUS_CONFLICT && a->broken &&
            json_is_string(json_object_get(answer.body, "endedOn")))
            return RENDEZVOUS_E_OVER;
        /* A conflict is a whole sentence about the job. */
        if (r != CLIENT_E_REFUSED || answer.status != STATUS_CONFLICT)
            (void)err_prefix(e, "the hub does not say where the job \"%s\" meets", job);
        return is_away ? RENDEZVOUS_E_AWAY : r;
    }
    if (!take_run(answer.body, m.id, sizeof(m.id)) || m.id[0] == '\0' ||
        !take_text(json_object_get(answer.body, "c10d"), "endpoint", m.c10d, sizeof(m.c10d)) ||
        !take_text(json_object_get(answer.body, "etcdV2"), "endpoint", m.etcd, sizeof(m.etcd)))
        return err_set(e, -EPROTO, "the hub's answer about the job \"%s\" names no run of it", job);
    if (!take_text(answer.body, "epoch", m.epoch, sizeof(m.epoch)))
        m.epoch[0] = '\0';
    m.begins = json_is_true(json_object_get(answer.body, "begins"));
    *ret = m;
    return 0;
}

static enum rendezvous_state state_of(
    const struct client_answer *answer, const struct env_rendezvous *m)
{
    const char *epoch = json_string_value(json_object_get(answer->body, "epoch"));
    const char *run = json_string_value(json_object_get(answer->body, "run"));

    if (answer->status != STATUS_OK || !epoch || !run)
        return RENDEZVOUS_STATE_UNKNOWN;
    if (strcmp(run, m->id) != 0)
        return RENDEZVOUS_STATE_BROKEN;
    return strcmp(epoch, m->epoch) == 0 ? RENDEZVOUS_STATE_SAME : RENDEZVOUS_STATE_MOVED;
}

enum rendezvous_state rendezvous_look(
    const char *socket_path, const char *job, const struct env_rendezvous *m)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
    return state_of(&answer, m);
}

/* A count that the hub has said; 0 when it is none. */
static unsigned take_count(const json_t *said, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(said, field));

    return n > 0 && n <= UINT_MAX ? (unsigned)n : 0;
}

/* Seconds that the hub has said, as ns; 0 when it is no time, and a year at most. */
static nsec_t take_seconds(const json_t *said, const char *field)
{
    double s = json_number_value(json_object_get(said, field));
    double most = 365.0 * 86400;

    if (!(s > 0))
        return 0;
    return (nsec_t)((s < most ? s : most) * (double)NSEC_PER_SEC);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* By name, as the hub has them in the order that it has heard of them. @n_field: absent in a hub of
 * before, which names all. */
static void take_nodes(
    struct rendezvous_nodes *ret, const json_t *said, const char *field, const char *n_field)
{
    const json_t *name;
    size_t i;

    json_array_foreach(json_object_get(said, field), i, name)
        if (ret->n < RENDEZVOUS_NAMED_MAX && json_is_string(name) &&
            parse_name(json_string_value(name), "node", NULL) == 0)
            (void)snprintf(ret->names[ret->n++], sizeof(ret->names[0]), "%.*s", NAME_MAX_LEN,
                json_string_value(name));
    qsort(ret->names, ret->n, sizeof(ret->names[0]), compare_names);
    ret->n_all = take_count(said, n_field);
    if (ret->n_all < ret->n)
        ret->n_all = ret->n;
}

/* Nodes of the run that are drained. */
static void take_drained(struct rendezvous_presence *ret, const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) {
        struct rendezvous_drained *d = &ret->drained[ret->n_drained];
        const char *name = json_string_value(json_object_get(one, "node"));

        if (ret->n_drained == RENDEZVOUS_NAMED_MAX)
            return;
        if (!name || parse_name(name, "node", NULL) != 0)
            continue;
        (void)snprintf(d->name, sizeof(d->name), "%.*s", NAME_MAX_LEN, name);
        if (!take_text(one, "why", d->why, sizeof(d->why)))
            d->why[0] = '\0';
        text_make_plain(d->why, '?');
        ret->n_drained++;
    }
}

/* What the hub says of the commands of the run. */
static void take_presence(struct rendezvous_presence *ret, const json_t *said)
{
    ret->is_known = true;
    ret->n_present = take_count(said, "present");
    ret->silent_for = take_seconds(said, "silentSeconds");
    take_nodes(&ret->lost, said, "lost", "lostNodes");
    take_nodes(&ret->ended, said, "endedOn", "ended");
    take_drained(ret, json_object_get(said, "drained"));
    said = json_object_get(said, "endedWithout");
    if (take_run(said, ret->run_without, sizeof(ret->run_without)))
        take_nodes(&ret->ended_without, said, "endedOn", "ended");
}

void rendezvous_format_nodes(struct str *out, const struct rendezvous_nodes *nodes)
{
    for (unsigned i = 0; i < nodes->n; i++)
        str_addf(out, "%s%s", i == 0 ? "" : ", ", nodes->names[i]);
    if (nodes->n_all > nodes->n)
        str_addf(out, "%s%u more", nodes->n > 0 ? " and " : "", nodes->n_all - nodes->n);
}

enum rendezvous_state rendezvous_say(const char *socket_path, const char *job,
    const struct env_rendezvous *m, const char *command, unsigned every_s, bool ended,
    struct rendezvous_presence *ret)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    json_t *body = json_pack("{s:s, s:s, s:i, s:b}", "run", m->id, "command", command,
        "everySeconds", (int)every_s, "ended", (int)ended);
    enum rendezvous_state state;

    *ret = (struct rendezvous_presence){0};
    (void)ask(socket_path, job, "PUT", body, LOOK_TIMEOUT_MS, &answer, NULL);
    /* A hub, or an agent, of a version that does not know this call. */
    if (answer.status == STATUS_NOT_FOUND || answer.status == STATUS_NO_METHOD)
        return rendezvous_look(socket_path, job, m);
    state = state_of(&answer, m);
    if (state == RENDEZVOUS_STATE_SAME || state == RENDEZVOUS_STATE_MOVED)
        take_presence(ret, json_object_get(answer.body, "presence"));
    return state;
}

/* Any status from the hub counts as an answer, also 404 when it has forgotten the job. */
static bool is_answer(const struct client_answer *answer)
{
    return answer->status != 0 && answer->status != STATUS_HUB_AWAY &&
           answer->status != STATUS_NOT_SERVED;
}

json_t *rendezvous_members(
    const char *socket_path, const char *job, const char *run, bool *ret_answers)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    const char *present;
    json_t *members;

    (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
    if (ret_answers)
        *ret_answers = is_answer(&answer);
    present = json_string_value(json_object_get(answer.body, "run"));
    members = json_object_get(answer.body, "members");
    if (!present || strcmp(present, run) != 0 || !json_is_array(members))
        return NULL;
    return json_incref(members);
}

bool rendezvous_wait(
    const char *socket_path, const char *job, unsigned patience_ms, struct interrupt *i)
{
    nsec_t deadline = clock_now() + (nsec_t)patience_ms * NSEC_PER_MSEC;

    do {
        _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

        (void)ask(socket_path, job, "GET", NULL, LOOK_TIMEOUT_MS, &answer, NULL);
        if (is_answer(&answer))
            return true;
    } while (!interrupt_wait(i, LOOK_PAUSE_MS) && clock_now() < deadline);
    return false;
}

void rendezvous_say_nccl(const char *socket_path, const char *job, json_t *said)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    if (said)
        (void)call(socket_path, job, "nccl", "POST", said, END_TIMEOUT_MS, &answer, NULL);
}

bool rendezvous_say_sample(const char *socket_path, const char *job, json_t *sample)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    if (sample)
        (void)call(socket_path, job, "samples", "PUT", sample, LOOK_TIMEOUT_MS, &answer, NULL);
    return answer.status != STATUS_NOT_FOUND && answer.status != STATUS_NO_METHOD;
}

int rendezvous_say_ports(
    const char *socket_path, const char *job, json_t *ports, bool *ret_enforced, struct err *e)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int r = call(socket_path, job, "ports", "PUT", ports, LOOK_TIMEOUT_MS, &answer, e);
    const char *why = json_string_value(json_object_get(answer.body, "why"));

    if (r == CLIENT_E_REFUSED &&
        (answer.status == STATUS_NOT_FOUND || answer.status == STATUS_NO_METHOD))
        return err_set(e, r, "--isolate: the agent is of a version that isolates no jobs");
    if (r == 0 && why)
        return err_set(e, -ENOTSUP, "--isolate: this machine cannot enforce it: %s", why);
    *ret_enforced = r == 0 && json_is_true(json_object_get(answer.body, "enforced"));
    return r;
}

void rendezvous_end(const char *socket_path, const char *job)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;

    /* The hub refuses this while other nodes are connected. It accepts it from the last one. */
    (void)ask(socket_path, job, "DELETE", NULL, END_TIMEOUT_MS, &answer, NULL);
}

/* ==== one node finds out, and all take its result ============================================ */

/* Milliseconds between two looks: an eighth of the time that was waited already, within these. All
 * nodes of a job ask one hub. */
#define LOOK_EACH_MS     500
#define LOOK_EACH_MAX_MS 10000

/* A result begins with one of these. */
#define GOOD 'y'
#define BAD  'n'

/* Who waits says so after so long, and then so often. */
#define SAY_AFTER (10 * NSEC_PER_SEC)
#define SAY_EACH  (60 * NSEC_PER_SEC)

struct store {
    const struct agree_options *opt; /* borrowed */
    struct job_store keys;           /* owns */
    char claim[64];                  /* name of the key that claims the work */
};

/* Appends text as a form's field carries it (WHATWG URL standard, application/x-www-form-urlencoded
 * percent-encode set). */
static void add_encoded(struct str *out, const char *text)
{
    for (; *text != '\0'; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9'))
            str_add_bytes(out, text, 1);
        else
            str_addf(out, "%%%02X", (unsigned char)*text);
}

/* Return: 0 with the result in @out; -EAGAIN: there is none yet; or others, with words. */
static int agree_look(struct store *s, struct str *out, struct err *e)
{
    json_auto_t *node = NULL;
    int status = job_store_ask(&s->keys, "GET", s->opt->what, NULL, &node, e);
    const char *text = json_string_value(json_object_get(node, "value"));
    int r = status < 0 ? status : status == JOB_STORE_ABSENT ? -EAGAIN : 0;

    if (r == 0 && (status != JOB_STORE_OK || !text))
        r = job_store_refuse(status, e);
    else if (r == 0 && text[0] == GOOD)
        str_add(out, text + 1);
    else if (r == 0)
        r = err_set(
            e, -ECANCELED, "%.300s", text[0] != '\0' ? text + 1 : "another node has failed");
    return r;
}

/* Return: 0: it is for this node to do; -EAGAIN: another one is at it; or others, with words. */
static int agree_claim(struct store *s, struct err *e)
{
    char form[64 + NAME_MAX_LEN];
    int status;

    (void)snprintf(form, sizeof(form), "value=%.*s&prevExist=false&ttl=%u", NAME_MAX_LEN,
        s->opt->node, s->opt->patience_s);
    status = job_store_ask(&s->keys, "PUT", s->claim, form, NULL, e);
    if (status < 0)
        return status;
    if (status == JOB_STORE_MADE || status == JOB_STORE_OK)
        return 0;
    return status == JOB_STORE_EXISTS ? -EAGAIN : job_store_refuse(status, e);
}

/* Does the work, and tells the others. One whose claim had ended takes what another one has found
 * out meanwhile: the first result stays. Return: as agree_look(). */
static int make_it(struct store *s, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    _cleanup_(str_deinit) struct str form = STR_NULL;
    int r = make(ctx, &text, e);
    int status;

    if (r == 0 && (text.failed || text.len > AGREE_TEXT_MAX))
        r = err_set(e, -EFBIG, "%zu bytes are too many for the job's store, which takes %u",
            text.len, AGREE_TEXT_MAX);
    str_addf(&form, "prevExist=false&value=%c", r == 0 ? GOOD : BAD);
    add_encoded(&form, r == 0 ? str_text(&text) : err_text(e));
    /* Nobody has to know when this fails: then the others wait until the claim ends. */
    status =
        form.failed ? 0 : job_store_ask(&s->keys, "PUT", s->opt->what, str_text(&form), NULL, NULL);
    if (status == JOB_STORE_EXISTS)
        r = agree_look(s, out, e);
    else if (r == 0 && status != JOB_STORE_MADE && status != JOB_STORE_OK)
        r = status < 0 ? err_set(e, -EIO, "the job's store at the hub does not take the result")
                       : job_store_refuse(status, e);
    else if (r == 0)
        str_add(out, str_text(&text));
    return r;
}

/* Says whom this node waits for. Who has claimed the work has put its name there. */
static void say_wait(struct store *s, nsec_t waited)
{
    json_auto_t *node = NULL;
    bool is_known = job_store_ask(&s->keys, "GET", s->claim, NULL, &node, NULL) == JOB_STORE_OK;
    const char *who = json_string_value(json_object_get(node, "value"));

    if (is_known && who && parse_name(who, "node", NULL) == 0)
        (void)fprintf(stderr,
            "weft run: %s %s, for all nodes of the job; waiting for that for %lld s now\n", who,
            s->opt->doing, (long long)(waited / NSEC_PER_SEC));
}

static int agree(struct store *s, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    nsec_t begun_at = clock_now();
    nsec_t deadline = begun_at + 2 * (nsec_t)s->opt->patience_s * NSEC_PER_SEC;
    nsec_t say_at = begun_at + SAY_AFTER;
    nsec_t pause_ms;

    do {
        int r = agree_look(s, out, e);

        if (r == -EAGAIN)
            r = agree_claim(s, e);
        else
            return r;
        if (r == 0)
            return make_it(s, make, ctx, out, e);
        if (r != -EAGAIN)
            return r;
        if (clock_now() >= say_at) {
            say_wait(s, clock_now() - begun_at);
            say_at = clock_now() + SAY_EACH;
        }
        pause_ms = (clock_now() - begun_at) / NSEC_PER_MSEC / 8;
        (void)poll(NULL, 0, (int)nsec_max(LOOK_EACH_MS, nsec_min(pause_ms, LOOK_EACH_MAX_MS)));
    } while (clock_now() < deadline);
    return err_set(
        e, -ETIMEDOUT, "no node of the job has finished it within %u s", 2 * s->opt->patience_s);
}

/* What was found out before. */
static int hand_on(void *ctx, struct str *out, struct err *e)
{
    const struct agree_options *opt = ctx;

    str_add(out, str_text(opt->kept));
    return 0;
}

int agree_once(
    const struct agree_options *opt, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    struct store s = {.opt = opt};
    int r;

    if (opt->kept->len > 0) {
        make = hand_on;
        ctx = (void *)(uintptr_t)opt;
    }
    if (opt->rendezvous->id[0] == '\0')
        return make(ctx, out, e);
    r = job_store_open(&s.keys, opt->rendezvous, e);
    if (r != 0)
        return r;
    (void)snprintf(s.claim, sizeof(s.claim), "%s-claim", opt->what);
    r = agree(&s, make, ctx, out, e);
    job_store_close(&s.keys);
    return r;
}

/* ==== ranks, by order of arrival ============================================================= */

/* The directory. */
#define RANKS "ranks"

/* Rank 0's port is below those that the kernel gives to connections, where it stays free until the
 * script listens there. */
#define PORT_FIRST    20000
#define PORTS_END     28000
#define PORT_ATTEMPTS 64

/** "NODE ADDRESS PORT", as a key has it. */
struct entry {
    char node[NAME_MAX_LEN + 1];
    char address[IP_ADDR_TEXT_MAX];
    uint16_t port;
};

/* What another node has written is read as a stranger's: false if it is no entry. */
static bool parse_entry(struct entry *ret, const char *text)
{
    struct entry entry;
    char port[8];
    uint64_t number;
    struct ip_addr address;
    const char *first = text ? strchr(text, ' ') : NULL;
    const char *second = first ? strchr(first + 1, ' ') : NULL;

    if (!second || first - text > NAME_MAX_LEN ||
        second - first - 1 >= (ptrdiff_t)sizeof(entry.address))
        return false;
    (void)snprintf(entry.node, sizeof(entry.node), "%.*s", (int)(first - text), text);
    (void)snprintf(
        entry.address, sizeof(entry.address), "%.*s", (int)(second - first - 1), first + 1);
    (void)snprintf(port, sizeof(port), "%s", second + 1);
    if (parse_name(entry.node, "node", NULL) != 0 ||
        ip_addr_parse(&address, entry.address, NULL) != 0 ||
        parse_u64(&number, port, 1, UINT16_MAX, "port", NULL) != 0)
        return false;
    entry.port = (uint16_t)number;
    *ret = entry;
    return true;
}

/* ---- who has come --------------------------------------------------------------------------- */

/* What the directory says. Of a node that has come twice its first key counts. */
struct arrivals {
    unsigned n;         /* nodes */
    bool has_own;       /* this one is among them */
    unsigned own;       /* its place */
    struct entry first; /* with @n > 0 */
};

static void take_arrivals(struct arrivals *ret, const json_t *nodes, const char *own)
{
    _Static_assert(NAME_MAX_LEN <= 63, "a name is a key");
    json_auto_t *seen = json_object();
    const json_t *node;
    size_t i;

    *ret = (struct arrivals){0};
    json_array_foreach(nodes, i, node) {
        struct entry entry;

        if (!parse_entry(&entry, json_string_value(json_object_get(node, "value"))) ||
            json_object_get(seen, entry.node))
            continue;
        (void)json_object_set_new(seen, entry.node, json_true());
        if (ret->n == 0)
            ret->first = entry;
        if (strcmp(entry.node, own) == 0) {
            ret->has_own = true;
            ret->own = ret->n;
        }
        ret->n++;
    }
}

static int ranks_list(struct job_store *s, const char *own, struct arrivals *ret, struct err *e)
{
    json_auto_t *node = NULL;
    int status = job_store_ask(s, "GET", RANKS "?sorted=true", NULL, &node, e);

    take_arrivals(ret, json_object_get(node, "nodes"), own);
    if (status < 0)
        return status;
    return status == JOB_STORE_OK || status == JOB_STORE_ABSENT ? 0 : job_store_refuse(status, e);
}

/* Is it free for a server on that address? */
static bool is_free(const struct ip_addr *address, uint16_t port)
{
    const struct endpoint at = {.addr = *address, .port = port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &at);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, &sa.any, len) == 0;
}

static int find_port(const struct ranks_options *opt, uint16_t *ret, struct err *e)
{
    unsigned end =
        opt->first_port > PORT_FIRST && opt->first_port < PORTS_END ? opt->first_port : PORTS_END;
    struct rng rng = rng_kernel();
    struct ip_addr address;
    int r = ip_addr_parse(&address, opt->address4, e);

    for (unsigned i = 0; i < PORT_ATTEMPTS && r == 0; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + rng_u32(&rng) % (end - PORT_FIRST));

        if (is_free(&address, port)) {
            *ret = port;
            return 0;
        }
    }
    return r != 0 ? r
                  : err_set(e, -EADDRINUSE, "of %u ports of %s from %u to %u none is free",
                        PORT_ATTEMPTS, opt->address4, PORT_FIRST, end - 1);
}

static int ranks_come(struct job_store *s, const struct ranks_options *opt, struct err *e)
{
    char form[NAME_MAX_LEN + IP_ADDR_TEXT_MAX + 32];
    uint16_t port = 0;
    int status;
    int r = find_port(opt, &port, e);

    if (r != 0)
        return r;
    (void)snprintf(
        form, sizeof(form), "value=%.*s+%s+%u", NAME_MAX_LEN, opt->node, opt->address4, port);
    status = job_store_ask(s, "POST", RANKS, form, NULL, e);
    if (status < 0)
        return status;
    return status == JOB_STORE_MADE || status == JOB_STORE_OK ? 0 : job_store_refuse(status, e);
}

static int find_arrivals(
    struct job_store *s, const struct ranks_options *opt, struct arrivals *ret, struct err *e)
{
    int r = ranks_list(s, opt->node, ret, e);

    if (r != 0 || ret->has_own || !opt->starts)
        return r;
    r = ranks_come(s, opt, e);
    if (r == 0)
        r = ranks_list(s, opt->node, ret, e);
    if (r == 0 && !ret->has_own)
        r = err_set(e, -EPROTO, "the job's store at the hub has forgotten this node");
    return r;
}

int ranks_find(const struct ranks_options *opt, struct ranks *ret, struct err *e)
{
    struct arrivals arrivals;
    struct job_store s;
    int r = job_store_open(&s, opt->rendezvous, e);

    if (r != 0)
        return r;
    r = find_arrivals(&s, opt, &arrivals, e);
    job_store_close(&s);
    if (r != 0)
        return r;
    *ret = (struct ranks){.is_known = true, .rank = arrivals.has_own ? arrivals.own : arrivals.n};
    (void)snprintf(ret->address, sizeof(ret->address), "%s",
        arrivals.n > 0 ? arrivals.first.address : opt->address4);
    ret->port = arrivals.n > 0 ? arrivals.first.port : 0;
    return 0;
}
