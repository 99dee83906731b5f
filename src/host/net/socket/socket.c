/* socket.c - see socket.h. */
#include "net/socket/socket.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/parse.h"
#include "os/clock.h"
#include "os/file.h"

/* The forced option needs CAP_NET_ADMIN; the kernel cuts the usual one to the system's limit
 * without an error. */
static void set_buffer(int fd, int forced, int usual, int bytes)
{
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, usual, &bytes, sizeof(bytes));
}

void socket_set_receive_buffer(int fd, int bytes)
{
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
}

void socket_set_send_buffer(int fd, int bytes)
{
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

int socket_wait(int fd, short events, nsec_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        nsec_t left = deadline - clock_now();
        int n;

        if (left <= 0)
            return -ETIMEDOUT;
        n = poll(&p, 1, (int)nsec_min(left / NSEC_PER_MSEC + 1, INT_MAX));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

int socket_filter(int fd, int option, struct sock_filter *code, unsigned short n)
{
    struct sock_fprog program = {.len = n, .filter = code};

    return setsockopt(fd, SOL_SOCKET, option, &program, sizeof(program)) < 0 ? -errno : 0;
}

int socket_split_by_interface(int fd, unsigned ifindex)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ifindex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 1),
    };

    return socket_filter(fd, SO_ATTACH_REUSEPORT_CBPF, code, sizeof(code) / sizeof(*code));
}

/* ---- who has which port ---- */

struct local_ports local_ports_read(void)
{
    struct local_ports ports = {.first = 32768, .last = 60999};
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned first;
    unsigned last;

    if (!f)
        return ports;
    if (fscanf(f, "%u %u", &first, &last) == 2 && first > 0 && first <= last && last <= UINT16_MAX)
        ports = (struct local_ports){.first = (uint16_t)first, .last = (uint16_t)last};
    (void)fclose(f);
    return ports;
}

/* As in TASK_COMM_LEN. */
#define COMM_MAX 15

/* 0, or negative errno of bind(). */
static int try_bind(int family, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    _cleanup_(closep) int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return errno == EAFNOSUPPORT ? 0 : -errno;
    if (family == AF_INET)
        return bind(fd, (struct sockaddr *)&v4, sizeof(v4)) < 0 ? -errno : 0;
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&v6, sizeof(v6)) < 0)
        return -errno;
    return 0;
}

/** The socket that has the port, as the kernel's tables tell it. */
struct holder {
    uint64_t inode; /* 0: not told, or it is the kernel's own */
    uint64_t uid;   /* of its user */
};

/* As in the tables of TCP sockets (TCP_LISTEN): those of connections have the same port. */
#define STATE_LISTEN "0A"

/* sl local remote st tx:rx tr:when retrnsmt uid timeout inode ... */
#define TABLE_WORDS 10

/* A line of such a table as its words. @line: cut in pieces. False: it has too few. */
static bool split_line(char *line, char *words[static TABLE_WORDS])
{
    char *rest = line;

    for (unsigned i = 0; i < TABLE_WORDS; i++) {
        words[i] = strtok_r(i == 0 ? line : NULL, " \n", &rest);
        if (!words[i])
            return false;
    }
    return true;
}

/* @state: one in that state; NULL: any. */
static struct holder find_holder(const char *table, uint16_t port, const char *state)
{
    struct holder h = {0};
    _cleanup_(fclosep) FILE *f = fopen(table, "re");
    char line[512];
    char wanted[8];

    (void)snprintf(wanted, sizeof(wanted), ":%04X", port);
    while (f && fgets(line, sizeof(line), f)) {
        char *words[TABLE_WORDS];
        const char *at = split_line(line, words) ? strchr(words[1], ':') : NULL;

        if (at && strcmp(at, wanted) == 0 && (!state || strcmp(words[3], state) == 0) &&
            parse_u64(&h.inode, words[9], 1, UINT64_MAX, "inode", NULL) == 0 &&
            parse_u64(&h.uid, words[7], 0, UINT32_MAX, "uid", NULL) == 0)
            return h;
    }
    return (struct holder){0};
}

/* Those that listen are the first of a table. */
static void list_table(const char *table, listener_fn fn, void *ctx)
{
    _cleanup_(fclosep) FILE *f = fopen(table, "re");
    char line[512];
    bool is_head = true;

    while (f && fgets(line, sizeof(line), f)) {
        char *words[TABLE_WORDS];
        const char *at = split_line(line, words) ? strchr(words[1], ':') : NULL;
        uint64_t inode;

        if (at && strcmp(words[3], STATE_LISTEN) == 0 &&
            parse_u64(&inode, words[9], 1, UINT64_MAX, "inode", NULL) == 0)
            fn(ctx, (uint16_t)strtoul(at + 1, NULL, 16), inode);
        else if (!is_head)
            return;
        is_head = false;
    }
}

void listeners_list(listener_fn fn, void *ctx)
{
    list_table("/proc/net/tcp", fn, ctx);
    list_table("/proc/net/tcp6", fn, ctx);
}

static bool has_socket(const char *pid, uint64_t inode)
{
    char path[300];
    char wanted[40];
    _cleanup_(closedirp) DIR *dir = NULL;
    const struct dirent *each;

    (void)snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    dir = opendir(path);
    while (dir && (each = readdir(dir))) {
        char target[64];
        ssize_t n = readlinkat(dirfd(dir), each->d_name, target, sizeof(target) - 1);

        if (n <= 0)
            continue;
        target[n] = '\0';
        if (strcmp(target, wanted) == 0)
            return true;
    }
    return false;
}

static void read_name(const char *pid, char ret[static COMM_MAX + 1])
{
    char path[64];
    _cleanup_(fclosep) FILE *f = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
    f = fopen(path, "re");
    if (!f || !fgets(ret, COMM_MAX + 1, f))
        (void)snprintf(ret, COMM_MAX + 1, "?");
    ret[strcspn(ret, "\n")] = '\0';
    /* A process chooses its own name, and it is printed to a terminal. */
    for (char *c = ret; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
}

/* "nc (process 17)"; false: no process that can be looked at has that socket. */
static bool find_process(uint64_t inode, char *ret, size_t cap)
{
    _cleanup_(closedirp) DIR *dir = opendir("/proc");
    const struct dirent *each;
    char name[COMM_MAX + 1];

    while (dir && (each = readdir(dir))) {
        if (!isdigit((unsigned char)each->d_name[0]) || !has_socket(each->d_name, inode))
            continue;
        read_name(each->d_name, name);
        (void)snprintf(ret, cap, "%s (process %.20s)", name, each->d_name);
        return true;
    }
    return false;
}

/* Who has it, as words. What a process of another user has open only root may see. */
static void name_holder(bool is_tcp, uint16_t port, char *ret, size_t cap)
{
    const char *state = is_tcp ? STATE_LISTEN : NULL;
    struct holder h = find_holder(is_tcp ? "/proc/net/tcp" : "/proc/net/udp", port, state);

    if (h.inode == 0)
        h = find_holder(is_tcp ? "/proc/net/tcp6" : "/proc/net/udp6", port, state);
    if (h.inode != 0 && find_process(h.inode, ret, cap))
        return;
    if (h.inode != 0)
        (void)snprintf(ret, cap, "a process of user %" PRIu64 " (root sees which: ss -%clnp)",
            h.uid, is_tcp ? 't' : 'u');
    else
        (void)snprintf(ret, cap, "the kernel, or a process that cannot be seen from here");
}

int port_taken(bool is_tcp, uint16_t port, int r, struct err *e)
{
    char owner[80];

    name_holder(is_tcp, port, owner, sizeof(owner));
    return err_set(e, r, "%s port %u is in use already (EADDRINUSE): %s has it",
        is_tcp ? "TCP" : "UDP", port, owner);
}

int udp_owner_check(uint16_t port, struct err *e)
{
    int r = try_bind(AF_INET, port);

    if (r == 0)
        r = try_bind(AF_INET6, port);
    if (r == 0)
        return 0;
    if (r != -EADDRINUSE)
        return err_set(e, r, "UDP port %u cannot be listened on: %s", port, strerror(-r));
    return port_taken(false, port, UDP_OWNER_E_TAKEN, e);
}
