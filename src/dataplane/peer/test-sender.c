/*
 * test-sender.c - keepalives of many peers: how many system calls they take, and that each arrives
 * as what it is.
 *
 * The peers are of one device that has no interface, and are all reached at one socket here.
 * sendmmsg() is counted on its way to the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.h"
#include "peer/peer.h"
#include "peer/sender.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "test/support/noise_pair.h"
#include "wire/wg.h"

/* More than there are keypairs in one flush, and not a multiple of that. */
#define PEERS (2 * SENDER_KEYPAIRS_MAX + 16)

#define PATIENCE_MS 5000

struct fixture {
    struct port port;
    struct device device;
    struct rx_waiter waiter;
    struct udp_sockets far; /* where the peers are */
    struct peer *peers[PEERS];
    struct keypair *theirs[PEERS]; /* what the peer's side opens messages with */
    struct aead_lane *lane;        /* of that side */
    nsec_t now;
};

static unsigned n_calls;

/* In the place of the C library's. */
int sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    n_calls++;
    return (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

static struct udp_sockets open_here(void)
{
    static const struct offloads none = {0};
    struct endpoint here = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct udp_sockets s = UDP_SOCKETS_NULL;

    assert_int_equal(udp_open_at(&s, &here, &none, NULL), 0);
    return s;
}

/* ---- a port with peers ---------------------------------------------------------------------- */

static struct keypair *make_keypair(unsigned i, bool is_ours, nsec_t now)
{
    struct keypair *kp = NULL;

    assert_int_equal(keypair_new(&kp), 0);
    kp->alg = chacha();
    kp->local_index = is_ours ? i : 1000 + i;
    kp->remote_index = is_ours ? 1000 + i : i;
    kp->birth = now;
    kp->is_initiator = true;
    memset(is_ours ? kp->seal_key.b : kp->open_key.b, (int)i + 1, sizeof(kp->seal_key.b));
    return kp;
}

static void add_peer(struct fixture *f, unsigned i)
{
    struct x25519_public public = {{(uint8_t)(i + 1), 9}};
    struct keypairs_evicted none;

    assert_int_equal(peer_new(&f->peers[i], &f->device, &public), 0);
    f->peers[i]->path.remote = (struct endpoint){
        .addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = f->far.port};
    keypairs_add(&f->peers[i]->keypairs, make_keypair(i, true, f->now), &none);
    f->theirs[i] = make_keypair(i, false, f->now);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->now = clock_now();
    f->far = open_here();
    f->waiter.sockets = open_here();
    f->port.waiters = &f->waiter;
    f->port.opt.offloads.on[OFFLOAD_UDP_GSO] = true;
    assert_int_equal(loop_init(&f->port.loop), 0);
    assert_int_equal(sender_new(&f->port.sender, &f->port), 0);
    f->device.port = &f->port;
    f->device.mtu = 1420;
    f->device.link.is_up = true;
    htab_init(&f->device.by_key, 5);
    list_init(&f->device.peers);
    assert_int_equal(aead_lane_new(&f->lane), 0);
    for (unsigned i = 0; i < PEERS; i++)
        add_peer(f, i);
    n_calls = 0;
    *state = f;
    return 0;
}

static void remove_peer(struct fixture *f, unsigned i)
{
    struct keypairs_evicted evicted;

    keypairs_clear(&f->peers[i]->keypairs, &evicted);
    for (unsigned k = 0; k < 3; k++)
        (void)keypair_unref(evicted.kp[k]);
    peer_unlink(f->peers[i]);
    peer_free(f->peers[i]);
    (void)keypair_unref(f->theirs[i]);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->port.sender = sender_free(f->port.sender);
    f->lane = aead_lane_free(f->lane);
    for (unsigned i = 0; i < PEERS; i++)
        remove_peer(f, i);
    htab_deinit(&f->device.by_key);
    heap_deinit(&f->port.polls.timers);
    loop_deinit(&f->port.loop);
    udp_close(&f->waiter.sockets);
    udp_close(&f->far);
    free(f);
    return 0;
}

/* ---- what arrives --------------------------------------------------------------------------- */

/* The next datagram, which has to be a message of @peer; returns the bytes of the packet in it. */
static size_t expect_from(struct fixture *f, unsigned peer)
{
    struct pollfd p = {.fd = f->far.fd[UDP_FAMILY_V4], .events = POLLIN};
    struct wg_data head;
    uint8_t msg[2048];
    uint64_t counter;
    ssize_t len;

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    len = recv(p.fd, msg, sizeof(msg), 0);
    assert_true(len >= (ssize_t)WG_DATA_OVERHEAD);
    memcpy(&head, msg, sizeof(head));
    assert_int_equal(le32_get(head.receiver), 1000 + peer);
    assert_true(keypair_open(f->theirs[peer], f->lane, msg, (size_t)len, &counter));
    aead_lane_clear(f->lane);
    return (size_t)len - WG_DATA_OVERHEAD;
}

static void expect_no_more(const struct fixture *f)
{
    struct pollfd p = {.fd = f->far.fd[UDP_FAMILY_V4], .events = POLLIN};

    assert_int_equal(poll(&p, 1, 0), 0);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void make_due(struct fixture *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        timers_set_persistent_keepalive(&f->peers[i]->timers, 25 * NSEC_PER_SEC, f->now);
        (void)heap_set(&f->port.polls.timers, &f->peers[i]->poll.due, f->now + i);
    }
    f->now += NSEC_PER_SEC;
}

static void test_due_together(void **state)
{
    struct fixture *f = *state;
    const unsigned n = SENDER_KEYPAIRS_MAX;

    make_due(f, n);
    peer_poll_due(&f->port, f->now);
    assert_int_equal(n_calls, 1);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(expect_from(f, i), 0);
    expect_no_more(f);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(f->peers[i]->tx_bytes, WG_DATA_OVERHEAD);
    /* The next ones are due in a while, and none is left in the sender. */
    peer_poll_due(&f->port, f->now);
    assert_int_equal(n_calls, 1);
    assert_int_equal(f->port.sender->n_used, 0);
    assert_int_equal(f->port.sender->space_used, 0);
}

/* The sender holds so many keypairs at a time, and the room of those that went is used again. */
static void test_more_than_one_call_takes(void **state)
{
    struct fixture *f = *state;

    make_due(f, PEERS);
    peer_poll_due(&f->port, f->now);
    assert_int_equal(n_calls, (PEERS + SENDER_KEYPAIRS_MAX - 1) / SENDER_KEYPAIRS_MAX);
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(expect_from(f, i), 0);
    expect_no_more(f);
    assert_int_equal(f->port.sender->space_used, 0);
}

/* Who has no session is said to have none, and who is nowhere is sent nothing; the others' go. */
static void test_some_cannot(void **state)
{
    struct fixture *f = *state;
    struct sender *s = f->port.sender;
    struct keypairs_evicted evicted;

    keypairs_clear(&f->peers[1]->keypairs, &evicted);
    (void)keypair_unref(evicted.kp[0]);
    f->peers[2]->path.remote = (struct endpoint){.port = 0};
    assert_true(sender_add_keepalive(s, f->peers[0], f->now));
    assert_false(sender_add_keepalive(s, f->peers[1], f->now));
    assert_true(sender_add_keepalive(s, f->peers[2], f->now));
    assert_true(sender_add_keepalive(s, f->peers[3], f->now));
    assert_int_equal(n_calls, 0);
    sender_flush(s);
    assert_int_equal(n_calls, 1);
    assert_int_equal(expect_from(f, 0), 0);
    assert_int_equal(expect_from(f, 3), 0);
    expect_no_more(f);
}

/* What waited for a session is laid out where the keepalives are: those leave before. */
static void test_before_what_waited(void **state)
{
    static const uint8_t inner[100] = {0x45};
    struct fixture *f = *state;
    struct sender *s = f->port.sender;

    assert_true(sender_add_keepalive(s, f->peers[0], f->now));
    assert_true(sender_add_keepalive(s, f->peers[1], f->now));
    peer_stage(f->peers[2], inner, sizeof(inner), 0, &f->port.drops);
    sender_add_staged(s, f->peers[2], f->now);
    assert_true(sender_add_keepalive(s, f->peers[3], f->now));
    sender_flush(s);
    assert_int_equal(expect_from(f, 0), 0);
    assert_int_equal(expect_from(f, 1), 0);
    assert_int_equal(expect_from(f, 2), 112);
    assert_int_equal(expect_from(f, 3), 0);
    expect_no_more(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_due_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_one_call_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_some_cannot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_before_what_waited, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
