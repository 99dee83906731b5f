/*
 * bench-relay.c - what it costs to relay, against forwarding without a thought, in one run.
 *
 *     bench-relay [MEGABYTES] > result.json
 *     bench-relay forward PORT A B     between two endpoints, until it is killed: "batched" below
 *
 * Each forwarder is a process of its own, on the loopback, and sends on what comes from one
 * address to another. They take turns, round by round, so that noise is shared; the figure is the
 * CPU time of the whole process for what it forwarded, the median of the rounds.
 *
 *   relay     port, filter and router as in the hub: the sender's address is looked up, then its
 *             lease, then the receiver's address
 *   batched   the same system calls and offloads, but to a fixed address
 *   plain     recvfrom() and sendto(), a datagram at a time, as the simplest forwarder does
 *
 * "bulk" is datagrams of 1452 bytes that arrive together, as a transfer gives them; "small" are
 * single ones of 128 bytes.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/parse.h"
#include "filter/relay.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "noise/cookie.h"
#include "os/clock.h"
#include "port/port.h"
#include "relay/router.h"
#include "wire/wg.h"

#define ROUNDS        5
#define INDEX         4711 /* of the one session that is relayed */
#define BULK_SIZE     1452
#define SMALL_SIZE    128
#define BULK_RUN      44 /* datagrams that leave together */
#define SMALL_RUN     64 /* datagrams in flight, one by one */
#define N_OTHER_NODES 1000

/** What is sent. */
struct load {
    const char *name;
    uint16_t size; /* bytes of a datagram */
    unsigned run;  /* datagrams under way at once */
    bool together; /* as one run */
};

static const struct load loads[] = {
    {"bulk", BULK_SIZE, BULK_RUN, true},
    {"small", SMALL_SIZE, SMALL_RUN, false},
};

/** The two ends, both in this process. */
struct ends {
    struct udp_sockets from;
    struct udp_sockets to;
    struct udp_outbox out;
    struct udp_inbox in;
};

static struct endpoint loopback(uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[]){127, 0, 0, 1}), .port = port};
}

static void die(const char *what)
{
    (void)fprintf(stderr, "bench-relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct udp_sockets open_sockets(uint16_t port)
{
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;
    struct udp_sockets s;

    offload_test_udp(&offloads);
    if (udp_open(&s, port, 0, UDP_SHARE_NONE, &offloads, &e) < 0) {
        (void)fprintf(stderr, "bench-relay: %s\n", err_text(&e));
        exit(1);
    }
    return s;
}

/* ---- forwarders: each runs in a child until it is killed ------------------------------------ */

typedef void (*forwarder_fn)(uint16_t port, uint16_t from, uint16_t to);

static void run_plain(uint16_t port, uint16_t from, uint16_t to)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(to)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int size = 8 << 20;
    uint8_t buf[2048];

    here.sin_addr.s_addr = there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
    if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0)
        die("bind");
    for (;;) {
        ssize_t n = recvfrom(fd, buf, sizeof(buf), 0, NULL, NULL);

        if (n > 0)
            (void)sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&there, sizeof(there));
    }
}

/* What comes from one of two ends goes to the other one. */
static void forward_between(uint16_t port, const struct endpoint ends[static 2])
{
    struct udp_sockets s = open_sockets(port);
    struct pollfd pfd = {.fd = s.fd[UDP_FAMILY_V4], .events = POLLIN};
    struct udp_outbox out;
    struct udp_inbox in;

    if (udp_inbox_init(&in) < 0 || udp_outbox_init(&out, true, false) < 0)
        die("memory");
    for (;;) {
        unsigned n = udp_receive(&in, pfd.fd);

        for (unsigned i = 0; i < n; i++) {
            bool is_first = endpoint_equal(&in.runs[i].path.remote, &ends[0]);

            in.runs[i].path = (struct udp_path){.remote = ends[is_first ? 1 : 0]};
            udp_outbox_add(&out, &s, &in.runs[i]);
        }
        udp_outbox_flush(&out, &s);
        if (n == 0)
            (void)poll(&pfd, 1, -1);
    }
}

static void run_batched(uint16_t port, uint16_t from, uint16_t to)
{
    const struct endpoint ends[] = {loopback(from), loopback(to)};

    forward_between(port, ends);
}

static struct router_node *add_node(
    struct router *router, struct router_network *net, uint16_t n, struct x25519_public *ret_key)
{
    struct endpoint ep = loopback(n);
    struct ip_addr local = {{0}};
    struct router_node *node;

    *ret_key = (struct x25519_public){{(uint8_t)n, (uint8_t)(n >> 8), 1}};
    if (router_node_add(&node, router, net, ret_key) < 0)
        die("memory");
    router_node_set_address(router, node, &ep, &local);
    return node;
}

static bool no_index(void *ctx, uint32_t index)
{
    return false;
}

/* The handshake that makes the leases, as it would pass through. */
static void shake(struct router *router, uint16_t from, uint16_t to,
    const struct x25519_public *from_key, const struct x25519_public *to_key)
{
    struct wg_initiation hello = {
        .type = le32_make(WG_TYPE_INITIATION), .sender = le32_make(INDEX + 1)};
    struct wg_response answer = {.type = le32_make(WG_TYPE_RESPONSE),
        .sender = le32_make(INDEX),
        .receiver = le32_make(INDEX + 1)};
    struct router_arrival in = {.from = loopback(from), .now = clock_now(), .is_local = no_index};
    struct cookie_maker maker;

    maker = (struct cookie_maker){0};
    cookie_add_macs(&maker, to_key, &hello, sizeof(hello), 0);
    cookie_add_macs(&maker, from_key, &answer, sizeof(answer), 0);
    (void)router_route(router, &in, (const uint8_t *)&hello, sizeof(hello));
    in.from = loopback(to);
    if (router_route(router, &in, (const uint8_t *)&answer, sizeof(answer)).action !=
        ROUTER_ACTION_FORWARD)
        die("handshake");
}

static void run_relay(uint16_t port, uint16_t from, uint16_t to)
{
    struct port_options opt = {.listen_port = port, .n_workers = 1, .offloads = offloads_all()};
    struct x25519_public hub = {{9}};
    struct x25519_public keys[2];
    struct x25519_public other;
    struct rng rng = rng_kernel();
    struct router_network *net = NULL;
    struct err e = ERR_NULL;
    struct relay *relay = NULL;
    struct port *p;

    if (port_new(&p, &opt, &e) < 0 || relay_new(&relay, 1, &rng) < 0 ||
        router_network_add(&net, relay_router(relay), &hub) < 0)
        die("memory");
    (void)add_node(relay_router(relay), net, from, &keys[0]);
    (void)add_node(relay_router(relay), net, to, &keys[1]);
    for (uint16_t i = 1; i <= N_OTHER_NODES; i++)
        (void)add_node(relay_router(relay), net, i, &other);
    shake(relay_router(relay), from, to, &keys[0], &keys[1]);
    port_set_filter(p, relay_filter, relay);
    if (port_start(p, &e) < 0) {
        (void)fprintf(stderr, "bench-relay: %s\n", err_text(&e));
        exit(1);
    }
    for (;;)
        (void)pause();
}

static const struct {
    const char *name;
    forwarder_fn run;
} forwarders[] = {
    {"relay", run_relay},
    {"batched", run_batched},
    {"plain", run_plain},
};

#define N_FORWARDERS (sizeof(forwarders) / sizeof(*forwarders))
#define N_LOADS      (sizeof(loads) / sizeof(*loads))

/* ---- measuring ------------------------------------------------------------------------------ */

static void fill(uint8_t *buf, const struct load *load)
{
    for (unsigned i = 0; i < load->run; i++) {
        struct wg_data header = {.type = le32_make(WG_TYPE_DATA), .receiver = le32_make(INDEX)};

        memcpy(buf + (size_t)i * load->size, &header, sizeof(header));
    }
}

static void send_turn(struct ends *ends, uint8_t *buf, const struct load *load, uint16_t to)
{
    uint32_t len = (uint32_t)load->run * load->size;
    uint32_t step = load->together ? len : load->size;

    for (uint32_t off = 0; off < len; off += step) {
        struct udp_run run = {
            .buf = buf + off, .len = step, .seg = load->size, .path = {.remote = loopback(to)}};

        udp_outbox_add(&ends->out, &ends->from, &run);
    }
    udp_outbox_flush(&ends->out, &ends->from);
}

/* Bytes that arrive until a turn's worth is there, or nothing comes any more. */
static uint64_t receive_turn(struct ends *ends, uint64_t want)
{
    struct pollfd pfd = {.fd = ends->to.fd[UDP_FAMILY_V4], .events = POLLIN};
    uint64_t got = 0;

    while (got < want && poll(&pfd, 1, 200) > 0) {
        unsigned n = udp_receive(&ends->in, pfd.fd);

        for (unsigned i = 0; i < n; i++)
            got += ends->in.runs[i].len;
    }
    return got;
}

static pid_t start(forwarder_fn run, struct ends *ends, uint8_t *buf, uint16_t port)
{
    struct load one = {"", SMALL_SIZE, 1, true};
    pid_t child = fork();

    if (child < 0)
        die("fork");
    if (child == 0)
        run(port, ends->from.port, ends->to.port);
    /* It forwards: it has started. */
    fill(buf, &one);
    do
        send_turn(ends, buf, &one, port);
    while (receive_turn(ends, SMALL_SIZE) == 0);
    return child;
}

/* CPU time of all threads of a process so far. */
static uint64_t cpu_ns(pid_t pid)
{
    uint64_t sum = 0;
    char path[320];
    struct dirent *task;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && (task = readdir(dir))) {
        char text[64] = "";
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, task->d_name);
        f = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!f)
            continue;
        if (fgets(text, sizeof(text), f))
            sum += strtoull(text, NULL, 10);
        (void)fclose(f);
    }
    if (dir)
        (void)closedir(dir);
    return sum;
}

/* CPU seconds for a gigabyte. */
static double measure(const struct load *load, forwarder_fn run, uint64_t n_bytes)
{
    static uint8_t buf[BULK_RUN * BULK_SIZE];
    struct ends ends = {.from = open_sockets(0), .to = open_sockets(0)};
    uint16_t port = (uint16_t)(ends.from.port ^ 1);
    uint64_t before, used, got = 0;
    pid_t child;

    if (udp_inbox_init(&ends.in) < 0 || udp_outbox_init(&ends.out, true, true) < 0)
        die("memory");
    child = start(run, &ends, buf, port);
    fill(buf, load);
    before = cpu_ns(child);
    while (got < n_bytes) {
        uint64_t want = (uint64_t)load->run * load->size;
        uint64_t now = 0;

        send_turn(&ends, buf, load, port);
        now = receive_turn(&ends, want);
        if (now == 0)
            die("nothing is forwarded");
        got += now;
    }
    used = cpu_ns(child) - before;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    udp_outbox_deinit(&ends.out);
    udp_inbox_deinit(&ends.in);
    udp_close(&ends.from);
    udp_close(&ends.to);
    return (double)used / (double)got;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void bench(const struct load *load, uint64_t n_bytes, const char *separator)
{
    double seconds[N_FORWARDERS][ROUNDS];

    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < N_FORWARDERS; i++)
            seconds[i][round] = measure(load, forwarders[i].run, n_bytes);
    (void)printf("  \"%s\": {\"bytes\": %u", load->name, load->size);
    for (unsigned i = 0; i < N_FORWARDERS; i++) {
        qsort(seconds[i], ROUNDS, sizeof(double), compare_doubles);
        (void)printf(", \"%sCpuPerGB\": %.3f", forwarders[i].name, seconds[i][ROUNDS / 2]);
    }
    (void)printf(", \"relayToBatched\": %.2f, \"relayToPlain\": %.2f}%s\n",
        seconds[0][ROUNDS / 2] / seconds[1][ROUNDS / 2],
        seconds[0][ROUNDS / 2] / seconds[2][ROUNDS / 2], separator);
}

static int forward(char **words)
{
    struct endpoint ends[2];
    struct err e = ERR_NULL;
    uint64_t port;

    if (parse_u64(&port, words[0], 1, UINT16_MAX, "PORT", &e) == 0 &&
        endpoint_parse(&ends[0], words[1], &e) == 0 && endpoint_parse(&ends[1], words[2], &e) == 0)
        forward_between((uint16_t)port, ends);
    (void)fprintf(stderr, "bench-relay: %s\n", err_text(&e));
    return 2;
}

int main(int argc, char **argv)
{
    struct err e = ERR_NULL;
    uint64_t megabytes = 1000;

    if (argc == 5 && strcmp(argv[1], "forward") == 0)
        return forward(argv + 2);
    if (argc > 1 && parse_u64(&megabytes, argv[1], 1, 100000, "MEGABYTES", &e) != 0) {
        (void)fprintf(stderr, "bench-relay: %s\n", err_text(&e));
        return 2;
    }
    (void)printf("{\n");
    /* A tenth of it for small ones: they take ten times as long. */
    bench(&loads[0], megabytes * 1000000, ",");
    bench(&loads[1], megabytes * 100000, "");
    (void)printf("}\n");
    return 0;
}
