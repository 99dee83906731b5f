/* path_couple.c - see path_couple.h. */
#include "test/support/path_couple.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct couple_node *other(struct couple *c, unsigned i)
{
    return &c->nodes[1 - i];
}

static void send_frame(struct couple *c, unsigned from, const struct path_action *a)
{
    bool v6 = c->has_v6 && endpoint_equal(&a->remote, &other(c, from)->ep6);
    nsec_t at =
        c->now + (v6 ? c->delay6 : COUPLE_DELAY) + (c->now < c->slow_until ? c->slow_by : 0);
    size_t place = c->n_frames;
    struct couple_frame *f;

    c->n_sent++;
    if ((!v6 && !endpoint_equal(&a->remote, &other(c, from)->ep)) || other(c, from)->is_deaf)
        return;
    if (v6 && c->hole6 != 0 && a->len > c->hole6)
        return;
    assert_true(c->n_frames < COUPLE_INFLIGHT);
    while (place > 0 && c->frames[place - 1].at > at)
        place--;
    f = &c->frames[place];
    memmove(f + 1, f, (c->n_frames - place) * sizeof(*f));
    f->at = at;
    f->to = 1 - from;
    f->from = v6 ? c->nodes[from].ep6 : c->nodes[from].ep;
    f->len = a->len;
    memcpy(f->bytes, a->frame, a->len);
    if (f->to == 1)
        c->kept = *f;
    c->n_frames++;
}

static void take_actions(struct couple *c, unsigned i)
{
    struct couple_node *n = &c->nodes[i];
    struct path_action a;

    while (paths_next(n->paths, &a)) {
        if (a.kind == PATH_ACTION_SEND) {
            n->spoke_at = a.local;
            send_frame(c, i, &a);
        }
        if (a.kind == PATH_ACTION_USE) {
            n->use = a;
            n->n_uses++;
        }
        if (a.kind == PATH_ACTION_FITS) {
            n->fits = a;
            n->n_fits++;
        }
        if (a.kind == PATH_ACTION_FRESH)
            n->n_fresh++;
        if (a.kind == PATH_ACTION_EVENT) {
            n->n_events++;
            n->is_warned = a.is_warning;
            (void)snprintf(n->event, sizeof(n->event), "%s", a.text);
        }
    }
}

static void start_node(struct couple *c, unsigned i, const struct x25519_secret *secret)
{
    static const uint8_t addr[2][4] = {{198, 51, 100, 1}, {203, 0, 113, 2}};
    uint8_t addr6[16] = {0x20, 0x01, 0x0d, 0xb8};
    struct paths_options opt = {.secret = *secret, .rng = rng_seeded(&c->seed)};
    struct couple_node *n = &c->nodes[i];

    opt.name[0] = i == 0 ? 'a' : 'b';
    n->secret = *secret;
    assert_true(x25519_derive_public(secret, &n->key));
    assert_int_equal(paths_new(&n->paths, &opt, c->now), 0);
    n->ep = (struct endpoint){.addr = ip_addr_v4(addr[i]), .port = 51820};
    addr6[15] = (uint8_t)(i + 1);
    n->ep6 = (struct endpoint){.addr = ip_addr_v6(addr6), .port = 51820};
}

void couple_start(struct couple *c, enum path_policy policy)
{
    struct x25519_secret secrets[2];
    struct x25519_public keys[2];
    bool swap;

    memset(c, 0, sizeof(*c));
    c->seed = 7;
    c->now = 100 * NSEC_PER_SEC;
    c->frames = malloc((COUPLE_INFLIGHT + 1) * sizeof(*c->frames));
    assert_non_null(c->frames);
    for (unsigned i = 0; i < 2; i++) {
        struct rng rng = rng_seeded(&c->seed);

        x25519_secret_make(&secrets[i], &rng);
        assert_true(x25519_derive_public(&secrets[i], &keys[i]));
    }
    swap = x25519_public_compare(&keys[0], &keys[1]) > 0;
    for (unsigned i = 0; i < 2; i++)
        start_node(c, i, &secrets[swap ? 1 - i : i]);
    for (unsigned i = 0; i < 2; i++) {
        struct path_peer peer = {.key = other(c, i)->key, .policy = policy};

        peer.name[0] = i == 0 ? 'b' : 'a';
        assert_int_equal(paths_put_peer(c->nodes[i].paths, &peer, c->now), 0);
        take_actions(c, i);
    }
}

void couple_stop(struct couple *c)
{
    for (unsigned i = 0; i < 2; i++)
        c->nodes[i].paths = paths_free(c->nodes[i].paths);
    free(c->frames);
}

void couple_tell(struct couple *c)
{
    struct path_side sides[2] = {{.generation = 1}, {.generation = 1}};

    for (unsigned i = 0; i < 2; i++) {
        assert_true(candidates_add(&sides[i].candidates, CANDIDATE_HOST, &c->nodes[i].ep));
        if (c->has_v6)
            assert_true(candidates_add(&sides[i].candidates, CANDIDATE_HOST, &c->nodes[i].ep6));
        sides[i].keepalive = c->nodes[i].keepalive;
        paths_set_self(c->nodes[i].paths, &sides[i], c->now);
    }
    for (unsigned i = 0; i < 2; i++) {
        paths_set_peer_side(c->nodes[i].paths, &other(c, i)->key, &sides[1 - i], c->now);
        take_actions(c, i);
    }
}

void couple_inject(
    struct couple *c, unsigned to, const struct endpoint *from, const uint8_t *frame, size_t len)
{
    struct path_arrival in = {.from = *from, .local = c->nodes[to].heard_at, .at = c->now};
    uint8_t copy[PATH_FRAME_MAX];

    memcpy(copy, frame, len);
    paths_on_frame(c->nodes[to].paths, &in, copy, len, c->now);
    take_actions(c, to);
}

static void deliver_first(struct couple *c)
{
    struct couple_frame f = c->frames[0];

    c->n_frames--;
    memmove(&c->frames[0], &c->frames[1], c->n_frames * sizeof(c->frames[0]));
    couple_inject(c, f.to, &f.from, f.bytes, f.len);
}

void couple_run(struct couple *c, nsec_t time)
{
    nsec_t end = c->now + time;

    for (;;) {
        nsec_t frame_at = c->n_frames > 0 ? c->frames[0].at : NSEC_NEVER;
        nsec_t tick_at = nsec_min(paths_due(c->nodes[0].paths), paths_due(c->nodes[1].paths));
        nsec_t next = nsec_min(frame_at, tick_at);

        if (next > end)
            break;
        c->now = nsec_max(c->now, next);
        if (frame_at <= tick_at) {
            deliver_first(c);
            continue;
        }
        for (unsigned i = 0; i < 2; i++) {
            paths_tick(c->nodes[i].paths, c->now);
            take_actions(c, i);
        }
    }
    c->now = end;
}

void couple_traffic(struct couple *c)
{
    c->n_bytes++;
    for (unsigned i = 0; i < 2; i++)
        paths_on_traffic(c->nodes[i].paths, &other(c, i)->key, c->n_bytes, c->n_bytes, c->now);
}

void couple_run_with_traffic(struct couple *c, nsec_t time)
{
    nsec_t step = 500 * NSEC_PER_MSEC;

    for (nsec_t t = 0; t < time; t += step) {
        couple_traffic(c);
        couple_run(c, step);
    }
}

struct path_view couple_view(const struct couple *c, unsigned i)
{
    struct path_view view;

    assert_true(paths_view(c->nodes[i].paths, &c->nodes[1 - i].key, &view, c->now));
    return view;
}

void couple_assert_direct(const struct couple *c)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct path_action *use = &c->nodes[i].use;

        assert_int_equal(use->path, PATH_KIND_DIRECT);
        assert_true(endpoint_equal(&use->remote, &c->nodes[1 - i].ep));
        assert_int_equal(couple_view(c, i).kind, PATH_KIND_DIRECT);
        assert_string_equal(couple_view(c, i).why, "");
    }
}

void couple_assert_relayed(const struct couple *c)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(c->nodes[i].use.path, PATH_KIND_RELAY);
        assert_int_equal(couple_view(c, i).kind, PATH_KIND_RELAY);
        assert_true(strlen(couple_view(c, i).why) > 0);
    }
}
