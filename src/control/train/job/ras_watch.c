/* ras_watch.c - see ras_watch.h. */
#include "train/job/ras_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address/sockaddr.h"
#include "os/file.h"

/* Who runs the lowest rank asks so often, and who does not; where another job answers; and where
 * what answers is no RAS that speaks JSON. */
#define ASK_EACH       (5 * NSEC_PER_SEC)
#define ASK_OTHER_EACH (120 * NSEC_PER_SEC)
#define ASK_LOST_EACH  (60 * NSEC_PER_SEC)
#define ASK_OLD_EACH   (600 * NSEC_PER_SEC)

/* NCCL waits for its other processes for three seconds a leg; after this nothing will come. */
#define ANSWER_FOR (20 * NSEC_PER_SEC)

/* An answer holds for so long. */
#define HOLDS_FOR (30 * NSEC_PER_SEC)

static void add_endpoint(struct ras_watch *w, const char *host, const char *port)
{
    char text[ENDPOINT_TEXT_MAX];

    if (snprintf(text, sizeof(text), "%s:%s", host, port) < (int)sizeof(text) &&
        endpoint_parse(&w->at[w->n_at], text, NULL) == 0)
        w->n_at++;
}

void ras_watch_begin(struct ras_watch *w, const char *address, nsec_t now)
{
    static const char local[] = "localhost:";
    const char *text = address && address[0] != '\0' ? address : RAS_WATCH_ADDRESS;

    *w = (struct ras_watch)RAS_WATCH_NULL;
    if (strncmp(text, local, strlen(local)) == 0) {
        add_endpoint(w, "127.0.0.1", text + strlen(local));
        add_endpoint(w, "[::1]", text + strlen(local));
    } else if (endpoint_parse(&w->at[0], text, NULL) == 0) {
        w->n_at = 1;
    }
    if (w->n_at > 0)
        w->next_at = now + ASK_EACH;
}

static void stop(struct ras_watch *w)
{
    closep(&w->fd);
    free(w->answer);
    w->answer = NULL;
    w->len = 0;
    w->is_sent = false;
}

void ras_watch_end(struct ras_watch *w)
{
    stop(w);
    w->next_at = NSEC_NEVER;
    w->answered_at = 0;
}

/* Nothing has come from there, or nothing of use. */
static void fail(struct ras_watch *w)
{
    w->turn = (w->turn + 1) % w->n_at;
    stop(w);
}

static void ask(struct ras_watch *w, nsec_t now)
{
    union sockaddr_inet to;
    socklen_t len = sockaddr_from_endpoint(&to, &w->at[w->turn]);

    w->asked_at = now;
    w->next_at = now + ASK_EACH;
    w->answer = malloc(RAS_ANSWER_MAX + 1);
    w->fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!w->answer || w->fd < 0 || (connect(w->fd, &to.any, len) < 0 && errno != EINPROGRESS))
        fail(w);
}

/* Return: false: nothing more can be sent, or will come. */
static bool send_question(struct ras_watch *w)
{
    static const char question[] = RAS_QUESTION;
    ssize_t n = send(w->fd, question, strlen(question), MSG_NOSIGNAL);

    w->is_sent = n == (ssize_t)strlen(question);
    return w->is_sent || (n < 0 && (errno == EAGAIN || errno == ENOTCONN));
}

static void take(struct ras_watch *w, ras_own_fn is_own, const void *arg, nsec_t now)
{
    struct ras_status status;
    int r = ras_status_decode(&status, w->answer, w->len, is_own, arg, NULL);

    stop(w);
    w->answered_at = 0;
    if (r != 0 || !status.is_ours) {
        w->still_since = 0;
        w->next_at = now + (r != 0 ? ASK_OLD_EACH : ASK_LOST_EACH);
        return;
    }
    if (w->still_since == 0 || status.n_started != w->n_started)
        w->still_since = now;
    w->n_started = status.n_started;
    w->said = status.ranks;
    w->said.is_known = true;
    w->said.still_ms = (uint32_t)nsec_min((now - w->still_since) / NSEC_PER_MSEC, RAS_STILL_MAX);
    w->answered_at = now;
    w->next_at = now + (status.is_first ? ASK_EACH : ASK_OTHER_EACH);
}

/* Return: 0: that was all; -EAGAIN: more may come; -EMSGSIZE: it is too long; another one. */
static int receive(struct ras_watch *w)
{
    while (w->len <= RAS_ANSWER_MAX) {
        ssize_t n = recv(w->fd, w->answer + w->len, RAS_ANSWER_MAX + 1 - w->len, 0);

        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        w->len += (size_t)n;
    }
    return -EMSGSIZE;
}

static void hear(struct ras_watch *w, ras_own_fn is_own, const void *arg, nsec_t now)
{
    int r = -EAGAIN;

    if (!w->is_sent && !send_question(w)) {
        fail(w);
        return;
    }
    if (w->is_sent)
        r = receive(w);
    if (r == 0) {
        take(w, is_own, arg, now);
    } else if (r == -EMSGSIZE) {
        stop(w);
        w->next_at = now + ASK_OLD_EACH;
    } else if (r != -EAGAIN || now - w->asked_at > ANSWER_FOR) {
        fail(w);
    }
}

void ras_watch_look(struct ras_watch *w, ras_own_fn is_own, const void *arg, nsec_t now)
{
    if (w->fd < 0 && now >= w->next_at)
        ask(w, now);
    if (w->fd >= 0)
        hear(w, is_own, arg, now);
}

void ras_watch_add(struct ras_ranks *ret, const struct ras_watch *w, nsec_t now)
{
    if (w->answered_at != 0 && now - w->answered_at < HOLDS_FOR)
        *ret = w->said;
}
