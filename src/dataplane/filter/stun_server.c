/* stun_server.c - see stun_server.h. */
#include "filter/stun_server.h"

#include <stdatomic.h>

#include "base/drop.h"
#include "shared/port_tx.h"
#include "wire/stun.h"

int stun_server_init(struct stun_server *s, uint64_t seed)
{
    ratelimit_init(&s->limited, seed);
    atomic_init(&s->n_answers, 0);
    return stun_heard_init(&s->heard);
}

void stun_server_deinit(struct stun_server *s)
{
    ratelimit_deinit(&s->limited);
    stun_heard_deinit(&s->heard);
}

/* An answer to another port than the one that asked is always limited, and never longer than its
 * request. */
static bool may_answer(struct stun_server *s, const struct stun_request *req,
    const struct udp_run *reply, const struct udp_run *run, nsec_t now)
{
    if (reply->len <= run->len && req->response_port == 0)
        return true;
    if (reply->len > run->len && req->response_port != 0)
        return false;
    return ratelimit_allow(&s->limited, &run->path.remote.addr, now);
}

static void answer(struct stun_server *s, struct port_tx *tx, const struct udp_run *run,
    const struct stun_request *req)
{
    uint8_t *out = port_tx_room(tx, STUN_ANSWER_MAX);
    struct udp_run reply = {.buf = out, .path = run->path};

    stun_heard_add(&s->heard, &req->id, &run->path.remote, port_tx_now(tx));
    if (!out) {
        port_tx_drop(tx, DROP_NO_BUFFER, 1);
        return;
    }
    reply.len = (uint32_t)stun_encode_answer(req, &run->path.remote, out);
    reply.seg = (uint16_t)reply.len;
    if (!may_answer(s, req, &reply, run, port_tx_now(tx))) {
        port_tx_drop(tx, DROP_STUN_RATE_LIMITED, 1);
        return;
    }
    if (req->response_port != 0 && req->n_unknown == 0)
        reply.path.remote.port = req->response_port;
    port_tx_send(tx, &reply);
    atomic_fetch_add_explicit(&s->n_answers, 1, memory_order_relaxed);
}

bool stun_server_take(struct stun_server *s, struct port_tx *tx, const struct udp_run *run)
{
    struct stun_request req;

    if (!stun_is_request(run->buf, run->len))
        return false;
    if (stun_decode_request(&req, run->buf, run->len) == 0)
        answer(s, tx, run, &req);
    else
        port_tx_drop(tx, DROP_STUN_INVALID, 1);
    return true;
}
