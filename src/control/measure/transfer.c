/* transfer.c - see transfer.h. */
#include "measure/transfer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "measure/order.h"
#include "os/clock.h"

#define CHUNK      (256u << 10)
#define FIRST_STEP NSEC_PER_MSEC

/* ---- the meter ----------------------------------------------------------------------------- */

void transfer_meter_add(struct transfer_meter *m, nsec_t now, uint64_t total)
{
    if (m->step == 0)
        m->step = FIRST_STEP;
    if (m->n > 1 && now - m->at[m->n - 2] < m->step) {
        /* The last sample always has the newest value, even if the one before is closer than a
         * step. */
        m->at[m->n - 1] = now;
        m->bytes[m->n - 1] = total;
        return;
    }
    if (m->n == TRANSFER_SAMPLES) {
        for (unsigned i = 0; i < TRANSFER_SAMPLES / 2; i++) {
            m->at[i] = m->at[2 * i];
            m->bytes[i] = m->bytes[2 * i];
        }
        m->n = TRANSFER_SAMPLES / 2;
        m->step *= 2;
    }
    m->at[m->n] = now;
    m->bytes[m->n] = total;
    m->n++;
}

uint64_t transfer_meter_rate(const struct transfer_meter *m)
{
    unsigned last = m->n - 1;
    unsigned i = 0;
    nsec_t half;

    if (m->n < 2)
        return 0;
    half = m->at[0] + (m->at[last] - m->at[0]) / 2;
    while (i + 2 < m->n && m->at[i + 1] <= half)
        i++;
    if (m->at[last] <= m->at[i])
        return 0;
    return (
        uint64_t)((double)(m->bytes[last] - m->bytes[i]) * 8e9 / (double)(m->at[last] - m->at[i]));
}

/* ---- the loop ------------------------------------------------------------------------------ */

struct pump {
    struct transfer *t;
    struct transfer_meter meter;
    char *buffer;   /* owns; CHUNK bytes; their contents do not matter */
    nsec_t stop_at; /* monotonic; senders stop then */
};

static void end_sender(struct transfer_stream *s)
{
    (void)shutdown(s->fd, SHUT_WR);
    s->is_done = true;
}

static void send_some(struct pump *p, struct transfer_stream *s)
{
    uint64_t left = p->t->bytes_max - p->t->sent;
    ssize_t n =
        send(s->fd, p->buffer, left < CHUNK ? (size_t)left : CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0)
        p->t->sent += (uint64_t)n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || p->t->sent >= p->t->bytes_max)
        end_sender(s);
}

static void receive_some(struct pump *p, struct transfer_stream *s)
{
    ssize_t n = recv(s->fd, p->buffer, CHUNK, MSG_DONTWAIT);

    if (n > 0) {
        p->t->received.bytes += (uint64_t)n;
        transfer_meter_add(&p->meter, clock_now(), p->t->received.bytes);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
        p->t->received.bytes >= p->t->bytes_max)
        s->is_done = true;
}

/* Fills in @fds for the streams that have not ended. Return: how many have not. */
static size_t arm(const struct transfer *t, struct pollfd *fds)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_streams; i++) {
        const struct transfer_stream *s = &t->streams[i];

        fds[i] =
            (struct pollfd){.fd = s->is_done ? -1 : s->fd, .events = s->sends ? POLLOUT : POLLIN};
        n += !s->is_done;
    }
    return n;
}

static void turn(struct pump *p, struct pollfd *fds, nsec_t now)
{
    for (size_t i = 0; i < p->t->n_streams; i++) {
        struct transfer_stream *s = &p->t->streams[i];

        if (s->is_done)
            continue;
        if (s->sends && now >= p->stop_at)
            end_sender(s);
        else if (fds[i].revents && s->sends)
            send_some(p, s);
        else if (fds[i].revents)
            receive_some(p, s);
    }
}

int transfer_run(struct transfer *t)
{
    struct pollfd fds[2 * ORDER_STREAMS_MAX];
    struct pump p = {.t = t, .buffer = calloc(1, CHUNK)};
    nsec_t now = clock_now();

    if (!p.buffer)
        return -ENOMEM;
    p.stop_at = now + t->duration;
    while (now < t->deadline && arm(t, fds) > 0) {
        nsec_t next = now < p.stop_at ? nsec_min(p.stop_at, t->deadline) : t->deadline;

        (void)poll(fds, t->n_streams, (int)((next - now) / NSEC_PER_MSEC + 1));
        now = clock_now();
        turn(&p, fds, now);
    }
    t->received.bits_per_s = transfer_meter_rate(&p.meter);
    free(p.buffer);
    return 0;
}
