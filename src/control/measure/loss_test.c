/* loss_test.c - see link_test.h: how many of many datagrams to a peer are lost. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "measure/dial.h"
#include "measure/link_test.h"
#include "measure/order.h"
#include "net/socket/socket.h"
#include "os/clock.h"

/* Datagrams that are on their way at once at most. Every queue on the way, those of two machines
 * whose processors are busy among them, holds more small packets than that. */
#define WINDOW 128
/* Every so many datagrams one is answered, so the sender knows what is not on its way any more. */
#define ANSWERED 16
#define TICK     NSEC_PER_MSEC
/* Who was kept from the processor for longer does not catch up, since that would be a burst. */
#define SLACK         (4 * NSEC_PER_MSEC)
#define ASK_TRIES     5
#define PATIENCE_MIN  (400 * NSEC_PER_MSEC) /* a busy machine may need this long to answer */
#define OVERTAKEN_FOR (50 * NSEC_PER_MSEC)  /* by how much packets may be overtaken by others */

/* A test in progress. */
struct loss_state {
    const struct dial_target *to;
    struct loss_test *result;
    int fd;
    uint32_t heard_before; /* pings that the peer had counted before */
    uint32_t answered;     /* the first so many datagrams are not on their way any more */
    uint32_t next_ask;     /* sequence number of the next question; above those of datagrams */
    nsec_t progress_at;    /* when @answered has grown for the last time */
    nsec_t rtt;
    nsec_t patience; /* for how long an answer is waited for */
};

static bool send_ping(const struct loss_state *s, uint32_t seq, bool counted, bool is_silent)
{
    struct frame f = {.kind = FRAME_PING,
        .counted = counted,
        .is_silent = is_silent,
        .id = s->to->id,
        .seq = seq,
        .sent_at = clock_wall()};
    uint8_t out[FRAME_LEN];

    frame_encode(&f, out);
    return send(s->fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(out);
}

/* Takes what a pong says: which datagrams are not on their way any more, and how many have come. A
 * duplicate, which the network made, was counted as well. */
static void take_pong(struct loss_state *s, const struct frame *pong)
{
    struct loss_test *l = s->result;
    uint32_t came = pong->heard - s->heard_before;

    if (pong->seq < l->sent && pong->seq >= s->answered) {
        s->answered = pong->seq + 1;
        s->progress_at = clock_now();
    }
    if (came > l->heard && came <= INT32_MAX)
        l->heard = came < l->sent ? came : l->sent;
}

/* Waits for a pong of this session until @deadline. */
static bool receive_pong(struct loss_state *s, nsec_t deadline, struct frame *ret)
{
    while (socket_wait(s->fd, POLLIN, deadline) == 0) {
        uint8_t in[FRAME_LEN];
        /* recv() also reports an ICMP error about an earlier ping, which is not an answer. */
        ssize_t n = recv(s->fd, in, sizeof(in), MSG_DONTWAIT);

        if (n < 0 || !frame_decode(ret, in, (size_t)n) || ret->kind != FRAME_PONG ||
            !session_id_equal(&ret->id, &s->to->id))
            continue;
        take_pong(s, ret);
        return true;
    }
    return false;
}

/* Asks how many pings the peer has counted, until that is answered. */
static bool ask_heard(struct loss_state *s, struct frame *ret)
{
    uint32_t first = s->next_ask;

    for (unsigned i = 0; i < ASK_TRIES; i++) {
        nsec_t asked_at = clock_now();

        (void)send_ping(s, s->next_ask++, false, false);
        while (receive_pong(s, asked_at + s->patience, ret)) {
            if (ret->seq < first)
                continue;
            s->rtt = clock_now() - asked_at;
            return true;
        }
    }
    return false;
}

/* Sends what is due, as far as the window allows. */
static void send_due(struct loss_state *s, const struct order *o, nsec_t now, nsec_t *next)
{
    struct loss_test *l = s->result;
    nsec_t gap = NSEC_PER_SEC / o->per_second;

    *next = nsec_max(*next, now - SLACK);
    while (*next <= now && l->sent < o->datagrams && l->sent - s->answered < WINDOW) {
        bool is_answered = l->sent % ANSWERED == ANSWERED - 1;

        /* What the socket does not take was not sent, and is sent in another turn. */
        if (!send_ping(s, l->sent, true, !is_answered))
            return;
        l->sent++;
        *next += gap;
    }
}

static void send_all(struct loss_state *s, const struct order *o)
{
    struct loss_test *l = s->result;
    nsec_t start = clock_now();
    nsec_t until = start + (nsec_t)o->ms * NSEC_PER_MSEC;
    nsec_t next = start;
    nsec_t now = start;
    struct frame pong;

    s->progress_at = start;
    while (l->sent < o->datagrams && now < until) {
        send_due(s, o, now, &next);
        while (receive_pong(s, now + TICK, &pong))
            continue;
        now = clock_now();
        /* All answers were lost, or all datagrams. */
        if (l->sent - s->answered >= WINDOW && now - s->progress_at > s->patience) {
            s->answered = l->sent;
            s->progress_at = now;
        }
    }
    l->ms = (uint32_t)((now - start) / NSEC_PER_MSEC);
}

static void fail(struct loss_test *l, const char *why)
{
    (void)snprintf(l->why, sizeof(l->why), "%.*s", RESULT_WHY_MAX - 1, why);
}

static void run_steps(struct loss_state *s, const struct order *o)
{
    struct loss_test *l = s->result;
    nsec_t overtaken_until;
    struct frame pong;

    if (!ask_heard(s, &pong)) {
        fail(l, "nothing that was sent is answered");
        return;
    }
    s->heard_before = pong.heard;
    s->patience = nsec_max(PATIENCE_MIN, 3 * s->rtt);
    send_all(s, o);
    if (!ask_heard(s, &pong)) {
        fail(l, "it does not say how many have come");
        return;
    }
    if (l->heard == l->sent)
        return;
    overtaken_until = clock_now() + OVERTAKEN_FOR + s->rtt;
    while (receive_pong(s, overtaken_until, &pong))
        continue;
    (void)ask_heard(s, &pong);
}

void loss_test_run(struct loss_test *ret, const struct dial_target *to, const struct order *o)
{
    struct loss_state s = {
        .to = to, .result = ret, .next_ask = ORDER_DATAGRAMS_MAX, .patience = PATIENCE_MIN};
    struct err e = ERR_NULL;

    *ret = (struct loss_test){.sent = 0};
    if (dial_udp(to, &s.fd, &e) < 0) {
        fail(ret, err_text(&e));
        return;
    }
    run_steps(&s, o);
    (void)close(s.fd);
}
