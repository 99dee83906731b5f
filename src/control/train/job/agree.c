/* agree.c - see agree.h. */
#include "train/job/agree.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/clock.h"
#include "train/job/env.h"
#include "train/job/job_store.h"

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
    const struct agree_wish *wish; /* borrowed */
    struct job_store keys;         /* owns */
    char claim[64];                /* name of the key that claims the work */
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
static int look(struct store *s, struct str *out, struct err *e)
{
    json_t *node = NULL;
    int status = job_store_ask(&s->keys, "GET", s->wish->what, NULL, &node, e);
    const char *text = json_string_value(json_object_get(node, "value"));
    int r = status < 0 ? status : status == JOB_STORE_ABSENT ? -EAGAIN : 0;

    if (r == 0 && (status != JOB_STORE_OK || !text))
        r = job_store_refuse(status, e);
    else if (r == 0 && text[0] == GOOD)
        str_add(out, text + 1);
    else if (r == 0)
        r = err_set(
            e, -ECANCELED, "%.300s", text[0] != '\0' ? text + 1 : "another node has failed");
    json_decref(node);
    return r;
}

/* Return: 0: it is for this node to do; -EAGAIN: another one is at it; or others, with words. */
static int claim(struct store *s, struct err *e)
{
    char form[64 + NAME_MAX_LEN];
    int status;

    (void)snprintf(form, sizeof(form), "value=%.*s&prevExist=false&ttl=%u", NAME_MAX_LEN,
        s->wish->node, s->wish->patience_s);
    status = job_store_ask(&s->keys, "PUT", s->claim, form, NULL, e);
    if (status < 0)
        return status;
    if (status == JOB_STORE_MADE || status == JOB_STORE_OK)
        return 0;
    return status == JOB_STORE_EXISTS ? -EAGAIN : job_store_refuse(status, e);
}

/* Does the work, and tells the others. One whose claim had ended takes what another one has found
 * out meanwhile: the first result stays. Return: as look(). */
static int make_it(struct store *s, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    struct str text = STR_NULL;
    struct str form = STR_NULL;
    int r = make(ctx, &text, e);
    int status;

    if (r == 0 && (text.failed || text.len > AGREE_TEXT_MAX))
        r = err_set(e, -EFBIG, "%zu bytes are too many for the job's store, which takes %u",
            text.len, AGREE_TEXT_MAX);
    str_addf(&form, "prevExist=false&value=%c", r == 0 ? GOOD : BAD);
    add_encoded(&form, r == 0 ? str_text(&text) : err_text(e));
    /* Nobody has to know when this fails: then the others wait until the claim ends. */
    status = form.failed
                 ? 0
                 : job_store_ask(&s->keys, "PUT", s->wish->what, str_text(&form), NULL, NULL);
    if (status == JOB_STORE_EXISTS)
        r = look(s, out, e);
    else if (r == 0 && status != JOB_STORE_MADE && status != JOB_STORE_OK)
        r = status < 0 ? err_set(e, -EIO, "the job's store at the hub does not take the result")
                       : job_store_refuse(status, e);
    else if (r == 0)
        str_add(out, str_text(&text));
    str_deinit(&text);
    str_deinit(&form);
    return r;
}

/* Says whom this node waits for. Who has claimed the work has put its name there. */
static void say_wait(struct store *s, nsec_t waited)
{
    json_t *node = NULL;
    bool is_known = job_store_ask(&s->keys, "GET", s->claim, NULL, &node, NULL) == JOB_STORE_OK;
    const char *who = json_string_value(json_object_get(node, "value"));

    if (is_known && who && parse_name(who, "node", NULL) == 0)
        (void)fprintf(stderr,
            "weft run: %s %s, for all nodes of the job; waiting for that for %lld s now\n", who,
            s->wish->doing, (long long)(waited / NSEC_PER_SEC));
    json_decref(node);
}

static int pause_ms(nsec_t waited)
{
    return (int)nsec_max(LOOK_EACH_MS, nsec_min(waited / NSEC_PER_MSEC / 8, LOOK_EACH_MAX_MS));
}

static int agree(struct store *s, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    nsec_t begun_at = clock_now();
    nsec_t deadline = begun_at + 2 * (nsec_t)s->wish->patience_s * NSEC_PER_SEC;
    nsec_t say_at = begun_at + SAY_AFTER;

    do {
        int r = look(s, out, e);

        if (r == -EAGAIN)
            r = claim(s, e);
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
        (void)poll(NULL, 0, pause_ms(clock_now() - begun_at));
    } while (clock_now() < deadline);
    return err_set(
        e, -ETIMEDOUT, "no node of the job has finished it within %u s", 2 * s->wish->patience_s);
}

int agree_kept(void *ctx, struct str *out, struct err *e)
{
    const struct str *kept = ctx;

    str_add(out, str_text(kept));
    return 0;
}

int agree_once(
    const struct agree_wish *wish, agree_make_fn make, void *ctx, struct str *out, struct err *e)
{
    struct store s = {.wish = wish};
    int r = job_store_open(&s.keys, wish->meeting, e);

    if (r != 0)
        return r;
    (void)snprintf(s.claim, sizeof(s.claim), "%s-claim", wish->what);
    r = agree(&s, make, ctx, out, e);
    job_store_close(&s.keys);
    return r;
}
