/*
 * test-next-keys.c - keys that change while there are sessions, by what an engine is told.
 *
 * Two data planes of this process, in a network namespace of their own, which reach each other on
 * the loopback. That no packet is lost meanwhile is test/interop/test_next_keys.py's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/engine.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "port/device.h"
#include "port/port.h"
#include "test/support/netns.h"
#include "uapi/uapi.h"

/* How long a handshake on the loopback may take, on a machine that does much else. */
#define PATIENCE (20 * NSEC_PER_SEC)

/** One end of the pair. */
struct end {
    struct port *port;     /* owns */
    struct device *device; /* owns */
    struct engine *engine; /* owns */
    struct x25519_secret secrets[2];
    struct x25519_public publics[2];
    struct wg_config want;
};

struct fixture {
    bool is_usable;
    struct end ends[2];
};

static int call_device(void *ctx, const char *in, size_t len, struct str *out, struct err *e)
{
    size_t out_len;
    char *text;
    int r = uapi_handle(ctx, in, len, &text, &out_len);

    if (r != 0)
        return r;
    str_add_bytes(out, text, out_len);
    free(text);
    return 0;
}

static void apply(struct end *end)
{
    struct wg_config have = WG_CONFIG_NULL;
    struct diff d = DIFF_NULL;
    struct err e = ERR_NULL;
    bool is_second = x25519_public_equal(&end->want.public, &end->publics[1]);

    assert_int_equal(engine_get(end->engine, &have, &e), 0);
    assert_int_equal(diff_make(&d, &have, &end->want, NULL), 0);
    d.next_secret = x25519_public_is_none(&end->want.next_public) ? NULL : &end->secrets[1];
    if (engine_apply(end->engine, &d, &end->secrets[is_second], &e) != 0)
        fail_msg("%s", err_text(&e));
    diff_deinit(&d);
    wg_config_deinit(&have);
    /* And so it is: a second look finds nothing to do. */
    assert_int_equal(engine_get(end->engine, &have, &e), 0);
    assert_int_equal(diff_make(&d, &have, &end->want, NULL), 0);
    assert_true(diff_is_empty(&d));
    diff_deinit(&d);
    wg_config_deinit(&have);
}

static int open_end(struct end *end, unsigned i, struct err *e)
{
    const struct port_options port = {.offloads = offloads_all()};
    char name[] = "wft0";
    const struct device_options device = {.name = name, .tun_fd = -1};
    struct rtnl_link link;
    struct netlink nl;
    int r;

    name[3] = (char)('0' + i);
    for (unsigned k = 0; k < 2; k++) {
        end->secrets[k] =
            (struct x25519_secret){.b = {(uint8_t)(0x40 + 8 * i), (uint8_t)(1 + k), [31] = 0x41}};
        assert_true(x25519_derive_public(&end->secrets[k], &end->publics[k]));
    }
    end->want.listen_port = (uint16_t)(30000 + i);
    end->want.public = end->publics[0];
    r = port_new(&end->port, &port, e);
    if (r == 0)
        r = device_new(&end->device, end->port, &device, e);
    if (r == 0)
        r = port_start(end->port, e);
    if (r == 0)
        r = engine_userspace_new(&end->engine, call_device, end->device);
    if (r != 0)
        return r;
    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    assert_int_equal(rtnl_find_link(&nl, name, &link), 0);
    assert_int_equal(rtnl_set_link(&nl, link.ifindex, true, 0), 0);
    netlink_close(&nl);
    return 0;
}

/* Both know each other under their first keys. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = ERR_NULL;
    struct netlink nl;

    assert_non_null(f);
    *state = f;
    if (unshare(CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "skipped: no network namespace: %s\n", strerror(errno));
        return 0;
    }
    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    (void)netns_raise_loopback(&nl);
    netlink_close(&nl);
    for (unsigned i = 0; i < 2; i++)
        if (open_end(&f->ends[i], i, &e) != 0) {
            (void)fprintf(stderr, "skipped: %s\n", err_text(&e));
            return 0;
        }
    for (unsigned i = 0; i < 2; i++) {
        struct wg_peer peer = {.key = f->ends[1 - i].publics[0],
            .endpoint = {.addr = ip_addr_v4((uint8_t[]){127, 0, 0, 1}),
                .port = f->ends[1 - i].want.listen_port}};

        assert_int_equal(wg_config_add(&f->ends[i].want, &peer), 0);
        apply(&f->ends[i]);
    }
    f->is_usable = true;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct end *end = &f->ends[i];

        end->engine = engine_close(end->engine);
        if (end->device)
            end->device = device_free(end->device);
        if (end->port) {
            port_stop(end->port);
            end->port = port_free(end->port);
        }
        wg_config_deinit(&end->want);
    }
    free(f);
    return 0;
}

static struct fixture *need(void **state)
{
    struct fixture *f = *state;

    if (!f->is_usable)
        skip();
    return f;
}

/* What an end says of the other one. */
static struct wg_facts facts(struct end *end)
{
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    struct wg_facts found;

    assert_int_equal(engine_get(end->engine, &c, &e), 0);
    assert_int_equal(c.n_peers, 1);
    found = c.peers[0].facts;
    wg_config_deinit(&c);
    return found;
}

static int64_t handshake_at(struct end *end)
{
    struct wg_facts now = facts(end);

    return now.handshake_sec * NSEC_PER_SEC + now.handshake_nsec;
}

/* @from begins handshakes until both ends have a session that is newer than their last. */
static void shake(struct fixture *f, unsigned from)
{
    int64_t before[2] = {handshake_at(&f->ends[0]), handshake_at(&f->ends[1])};
    nsec_t until = clock_now() + PATIENCE;
    struct err e = ERR_NULL;

    /* A peer takes so many initiations a second, and no more. */
    (void)poll(NULL, 0, 25);
    do {
        assert_true(clock_now() < until);
        if (f->ends[from].engine->ops->handshake(
                f->ends[from].engine, &f->ends[from].want.peers[0].key, &e) != 0)
            fail_msg("%s", err_text(&e));
        for (unsigned i = 0; i < 100 && (handshake_at(&f->ends[0]) == before[0] ||
                                            handshake_at(&f->ends[1]) == before[1]);
             i++)
            (void)poll(NULL, 0, 10);
    } while (handshake_at(&f->ends[0]) == before[0] || handshake_at(&f->ends[1]) == before[1]);
}

/* The text of get=1, which names every key that an end has. */
static bool has_secret(struct end *end, const struct x25519_secret *secret)
{
    char hex[X25519_HEX_MAX];
    struct err e = ERR_NULL;
    struct str out = STR_NULL;
    bool found;

    assert_int_equal(call_device(end->device, "get=1\n\n", 7, &out, &e), 0);
    x25519_secret_write_hex(secret, hex);
    found = strstr(str_text(&out), hex) != NULL;
    str_deinit(&out);
    return found;
}

static void both_know(struct fixture *f, unsigned changing)
{
    f->ends[changing].want.next_public = f->ends[changing].publics[1];
    f->ends[1 - changing].want.peers[0].next_key = f->ends[changing].publics[1];
    apply(&f->ends[changing]);
    apply(&f->ends[1 - changing]);
}

static void commit(struct fixture *f, unsigned changing)
{
    struct end *end = &f->ends[changing], *other = &f->ends[1 - changing];

    end->want.public = end->publics[1];
    end->want.next_public = (struct x25519_public){.b = {0}};
    end->want.initiate_with_next = false;
    apply(end);
    other->want.peers[0].key = end->publics[1];
    other->want.peers[0].next_key = (struct x25519_public){.b = {0}};
    apply(other);
}

/* Its sessions are those that it had: they were begun when they were. */
static void test_one_end(void **state)
{
    struct fixture *f = need(state);
    struct end *a = &f->ends[0], *b = &f->ends[1];
    int64_t begun[2];

    shake(f, 0);
    both_know(f, 0);
    assert_false(facts(b).heard_next || facts(a).session_next);
    /* Both keys are there, and the first one is used. */
    shake(f, 0);
    shake(f, 1);
    assert_false(facts(b).heard_next || facts(a).session_next);
    a->want.initiate_with_next = true;
    apply(a);
    shake(f, 0);
    assert_true(facts(b).heard_next && facts(a).session_next);
    /* From then on it is spoken to under that key, too. */
    shake(f, 1);
    assert_true(facts(a).session_next);
    begun[0] = handshake_at(a);
    begun[1] = handshake_at(b);
    commit(f, 0);
    assert_int_equal(handshake_at(a), begun[0]);
    assert_int_equal(handshake_at(b), begun[1]);
    assert_false(has_secret(a, &a->secrets[0]));
    assert_true(has_secret(a, &a->secrets[1]));
    shake(f, 0);
    shake(f, 1);
}

/* All four pairs of keys are used on the way. */
static void test_both_ends_at_once(void **state)
{
    struct fixture *f = need(state);

    shake(f, 0);
    both_know(f, 0);
    both_know(f, 1);
    for (unsigned i = 0; i < 2; i++) {
        f->ends[i].want.initiate_with_next = true;
        apply(&f->ends[i]);
        shake(f, i);
        assert_true(facts(&f->ends[i]).session_next && facts(&f->ends[1 - i]).heard_next);
    }
    shake(f, 0);
    assert_true(facts(&f->ends[0]).session_next && facts(&f->ends[1]).session_next);
    /* One is through while the other one is on its way. */
    commit(f, 0);
    shake(f, 1);
    assert_true(facts(&f->ends[1]).session_next);
    commit(f, 1);
    shake(f, 0);
    shake(f, 1);
    for (unsigned i = 0; i < 2; i++)
        assert_false(has_secret(&f->ends[i], &f->ends[i].secrets[0]));
}

/* A peer that is told of nothing, as any stock WireGuard, goes on under the key that it knows. */
static void test_a_peer_that_knows_one_key(void **state)
{
    struct fixture *f = need(state);
    struct end *a = &f->ends[0];

    a->want.next_public = a->publics[1];
    a->want.initiate_with_next = true;
    a->want.peers[0].initiate_with_current = true;
    apply(a);
    shake(f, 0);
    shake(f, 1);
    assert_false(facts(a).session_next);
    /* Also where nobody has said so: the second try is under that key. */
    a->want.peers[0].initiate_with_current = false;
    apply(a);
    shake(f, 0);
    assert_false(facts(a).session_next);
}

/* The change is called off. */
static void test_called_off(void **state)
{
    struct fixture *f = need(state);
    struct end *a = &f->ends[0], *b = &f->ends[1];

    both_know(f, 0);
    a->want.initiate_with_next = true;
    apply(a);
    shake(f, 0);
    assert_true(facts(a).session_next);
    a->want.next_public = (struct x25519_public){.b = {0}};
    a->want.initiate_with_next = false;
    apply(a);
    assert_false(has_secret(a, &a->secrets[1]));
    b->want.peers[0].next_key = (struct x25519_public){.b = {0}};
    apply(b);
    shake(f, 0);
    shake(f, 1);
    assert_false(facts(a).session_next || facts(b).heard_next);
}

/* ---- requests that are refused ------------------------------------------------------------- */

static void assert_errno(struct end *end, const char *lines, int code)
{
    char expected[32];
    struct err e = ERR_NULL;
    struct str in = STR_NULL, out = STR_NULL;

    str_addf(&in, "set=1\n%s\n", lines);
    assert_int_equal(call_device(end->device, str_text(&in), in.len, &out, &e), 0);
    (void)snprintf(expected, sizeof(expected), "errno=%d\n\n", code);
    if (strcmp(str_text(&out), expected) != 0)
        fail_msg("%s was answered with %s", lines, str_text(&out));
    str_deinit(&in);
    str_deinit(&out);
}

#define KEY(n) "0" #n "00000000000000000000000000000000000000000000000000000000000000"

static void refuse(struct end *a)
{
    char own[X25519_HEX_MAX];
    char lines[2 * X25519_HEX_MAX + 100];

    assert_errno(a, "replace_peers=true\ninitiate_with_next=true\n", -EINVAL);
    assert_errno(a, "public_key=" KEY(1) "\nnext_private_key=" KEY(5) "\n", -EINVAL);
    x25519_secret_write_hex(&a->secrets[0], own);
    (void)snprintf(lines, sizeof(lines), "next_private_key=%s\n", own);
    assert_errno(a, lines, -EINVAL);
    (void)x25519_public_format_hex(&a->publics[0], own);
    (void)snprintf(lines, sizeof(lines), "public_key=" KEY(1) "\nnext_public_key=%s\n", own);
    assert_errno(a, lines, -EEXIST);
    /* Peers 1 and 2; 3 is the next key of 1. */
    assert_errno(
        a, "public_key=" KEY(2) "\npublic_key=" KEY(1) "\nnext_public_key=" KEY(2) "\n", -EEXIST);
    assert_errno(a, "public_key=" KEY(1) "\nnext_public_key=" KEY(3) "\n", 0);
    assert_errno(a, "public_key=" KEY(2) "\nnext_public_key=" KEY(3) "\n", -EEXIST);
    assert_errno(a, "public_key=" KEY(1) "\nreplaces=" KEY(1) "\n", -EINVAL);
    assert_errno(a, "public_key=" KEY(2) "\nreplaces=" KEY(1) "\n", -EEXIST);
    /* One that names it by its next key is about that very peer. */
    assert_errno(a, "public_key=" KEY(3) "\npersistent_keepalive_interval=7\n", 0);
    assert_errno(a, "public_key=" KEY(3) "\nreplaces=" KEY(1) "\nupdate_only=true\n", 0);
    assert_errno(a, "public_key=" KEY(3) "\nreplaces=" KEY(1) "\nupdate_only=true\n", 0);
    /* Without having been told of it before, too; and nothing comes of nothing. */
    assert_errno(a, "public_key=" KEY(4) "\nreplaces=" KEY(3) "\n", 0);
    assert_errno(a, "public_key=" KEY(6) "\nreplaces=" KEY(5) "\nupdate_only=true\n", 0);
}

/* Peers 2 and 4 are left, the second of which is what 1 was. */
static void test_names(void **state)
{
    struct fixture *f = need(state);
    struct end *a = &f->ends[0];
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;

    refuse(a);
    assert_int_equal(engine_get(a->engine, &c, &e), 0);
    assert_int_equal(c.n_peers, 2);
    assert_int_equal(c.peers[0].key.b[0], 2);
    assert_int_equal(c.peers[0].keepalive, 0);
    assert_int_equal(c.peers[1].key.b[0], 4);
    assert_int_equal(c.peers[1].keepalive, 7);
    assert_false(wg_config_has_next_keys(&c));
    wg_config_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_both_ends_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_knows_one_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_called_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
