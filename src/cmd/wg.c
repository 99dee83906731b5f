/*
 * wg.c - `weft wg IFNAME`: a WireGuard interface in user space.
 *
 * A drop-in for wireguard-go: the same arguments and environment, the same
 * socket, so wg(8) and wg-quick(8) work with it. Without -f it returns as soon
 * as the interface and the socket are there, and goes on in the background.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/traffic.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/interrupt.h"
#include "os/log.h"
#include "os/thread.h"
#include "os/timestamp_file.h"
#include "port/device.h"
#include "port/frame_socket.h"
#include "port/port.h"
#include "uapi/uapi.h"

static struct {
    const char *ifname;
    bool foreground;
    const char *socket;
    uint64_t threads;
    struct cpulist cpus;
    struct offloads offloads;
    struct noise_choice cipher;
    const char *library;
    const char *user;
    bool take_over;
    bool stats;
    struct traffic_rates rates;
    bool show_dscp;
    const char *timestamps;
} arg;

/* Room for the path of a unix socket, as in struct sockaddr_un. */
#define SOCKET_PATH_CAP 108

/* Most threads each way without --threads. Whether more are faster has to be measured. */
#define THREADS_DEFAULT_MAX 4

/* Where the time of handshakes is kept without --timestamps, in a file named as the interface. */
#define TIMESTAMPS_DIR "/var/lib/weft/wg"

/* Longest path of that file; a temporary one's name has to fit. */
#define TIMESTAMPS_PATH_MAX (PATH_MAX - 64)

/* How often it is looked whether that has to be written anew. */
#define TIMESTAMPS_EACH_MS 60000

/* ---- options ---- */

/* [struct cpulist] */
static int option_cpus(const struct option *o, const char *text, struct err *e)
{
    return cpulist_parse(o->field, text, e);
}

/* Those of the list are turned off. [struct offloads] */
static int option_no_offload(const struct option *o, const char *text, struct err *e)
{
    return offload_parse(o->field, text, e);
}

/* [struct noise_choice] */
static int option_cipher(const struct option *o, const char *text, struct err *e)
{
    return noise_choice_parse(o->field, text, e);
}

/* In the background the working directory is another one. [const char *] */
static int option_timestamps(const struct option *o, const char *text, struct err *e)
{
    if (text[0] != '/' || strlen(text) > TIMESTAMPS_PATH_MAX)
        return err_set(e, -EINVAL,
            "--timestamps \"%.60s\" is not a path that begins with / and has "
            "at most %d bytes",
            text, TIMESTAMPS_PATH_MAX);
    return option_text(o, text, e);
}

/* [uint64_t] */
static int option_send_rate(const struct option *o, const char *text, struct err *e)
{
    return traffic_rate_parse(o->field, text, o->name, e);
}

/* "CLASS=RATE", of @len bytes. */
static int take_class_rate(struct traffic_rates *ret, const char *item, size_t len, struct err *e)
{
    const char *equals = memchr(item, '=', len);
    enum traffic_class class;
    char text[32];

    if (!equals || !traffic_class_parse(&class, item, (size_t)(equals - item)) ||
        len - (size_t)(equals + 1 - item) >= sizeof(text))
        return err_set(e, -EINVAL,
            "--class-rate \"%.*s\" is not CLASS=RATE with control, priority, normal or bulk as the "
            "class, as in bulk=20Mbit",
            (int)len, item);
    (void)snprintf(
        text, sizeof(text), "%.*s", (int)(len - (size_t)(equals + 1 - item)), equals + 1);
    return traffic_rate_parse(&ret->classes[class], text, "--class-rate", e);
}

/* [struct traffic_rates] */
static int option_class_rates(const struct option *o, const char *text, struct err *e)
{
    int r = 0;

    for (const char *at = text; r == 0 && at;) {
        size_t len = strcspn(at, ",");

        r = take_class_rate(o->field, at, len, e);
        at = at[len] ? at + len + 1 : NULL;
    }
    return r;
}

static const struct option options[] = {
    {"IFNAME", NULL, option_text, &arg.ifname, NULL, "the interface to create",
        .is_required = true},
    {"-f", NULL, option_flag, &arg.foreground, NULL, "stay in the foreground"},
    {"--foreground", NULL, option_flag, &arg.foreground, NULL, "the same"},
    {"--socket", "PATH", option_socket, &arg.socket, NULL,
        "the configuration socket, instead of " UAPI_SOCKET_DIR "/IFNAME.sock",
        .max = UNIX_SOCKET_PATH_MAX},
    {"--threads", "N", option_u64, &arg.threads, NULL,
        "threads each way; by default half of the CPUs, at most 4", .min = 1, .max = 32},
    {"--cpus", "LIST", option_cpus, &arg.cpus, NULL, "run only on these CPUs, as in 0,2-5"},
    {"--no-offload", "LIST", option_no_offload, &arg.offloads, NULL,
        "do without these: udp-gso, udp-gro, tso, uso, or all"},
    {"--cipher", "NAME", option_cipher, &arg.cipher, NULL,
        "of data: chacha20poly1305 (default), which every WireGuard speaks, or aes256gcm, which "
        "weft alone does; a list of both wants the first and takes both"},
    {"--cipher-library", "NAME", option_text, &arg.library, NULL,
        "avx512, avx2, boringssl, ipsec-mb or openssl, instead of the fastest"},
    {"--rate", "RATE", option_send_rate, &arg.rates.all, NULL,
        "send no faster, as in 95Mbit: a little below the uplink, so that packets wait here, where "
        "they are sent by class and in turn, rather than behind it"},
    {"--class-rate", "LIST", option_class_rates, &arg.rates, NULL,
        "send these classes no faster, as in bulk=20Mbit,normal=50Mbit; the classes are control, "
        "priority, normal and bulk, by the packet's DSCP"},
    {"--show-dscp", NULL, option_flag, &arg.show_dscp, NULL,
        "let datagrams carry the DSCP of the packets in them, which tells whoever sees them"},
    {"--timestamps", "FILE", option_timestamps, &arg.timestamps, NULL,
        "keep there up to what time handshakes were dated, so that no peer refuses those of a "
        "later run if the clock was set back; by default " TIMESTAMPS_DIR "/IFNAME"},
    PRIVILEGES_OPTION(&arg.user),
    {"--take-over", NULL, option_flag, &arg.take_over, NULL,
        "if IFNAME is there and nobody runs it, since a process has handed it over, take it as it "
        "is"},
    {"--stats", NULL, option_flag, &arg.stats, NULL,
        "print the counters of the running IFNAME, and end"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "wg",
    .summary = "Run a WireGuard interface in user space.",
    .options = options,
    .notes = "Environment: LOG_LEVEL is error, info, verbose (or debug) or silent. WG_TUN_FD and\n"
             "WG_UAPI_FD are descriptors to use instead of opening the interface and the socket.",
};

/* ---- what to run ---- */

/** Everything that runs. */
struct wg {
    struct port *port;          /* owns */
    struct device *device;      /* owns */
    struct uapi_server *uapi;   /* owns */
    struct frame_socket *paths; /* owns */
    int end_fd; /* owns: eventfd, readable when the interface is gone or handed over */
    struct timestamp_file timestamps;
};

static const char *socket_path(char buf[static SOCKET_PATH_CAP])
{
    if (arg.socket)
        return arg.socket;
    (void)snprintf(buf, SOCKET_PATH_CAP, UAPI_SOCKET_DIR "/%s.sock", arg.ifname);
    return buf;
}

/* Where an agent finds the socket for path frames. With --socket none is made: no agent uses the
 * interface then. */
static const char *frame_socket_path(char buf[static SOCKET_PATH_CAP])
{
    (void)snprintf(buf, SOCKET_PATH_CAP, UAPI_SOCKET_DIR "/%s.path", arg.ifname);
    return buf;
}

/* A descriptor number from the environment; -1 when it is not set. */
static int env_fd(const char *name, struct err *e, int *ret)
{
    const char *text = getenv(name);
    uint64_t v;
    int r;

    *ret = -1;
    if (!text || !*text)
        return 0;
    r = parse_u64(&v, text, 0, 1 << 20, name, e);
    if (r == 0)
        *ret = (int)v;
    return r;
}

static int take_port_options(struct port_options *opt, struct err *e)
{
    struct cpulist cpus;
    int r = 0;

    *opt = (struct port_options){.cpus = arg.cpus,
        .offloads = arg.offloads,
        .aead_backend = arg.library,
        .sockets_follow_links = true};
    if (arg.cpus.n > 0)
        r = cpulist_confine(&opt->cpus, e);
    cpulist_allowed(&cpus);
    if (opt->cpus.n > 0)
        cpus = opt->cpus;
    opt->n_workers = cpus.n / 2;
    if (opt->n_workers > THREADS_DEFAULT_MAX)
        opt->n_workers = THREADS_DEFAULT_MAX;
    if (arg.threads)
        opt->n_workers = (unsigned)arg.threads;
    if (opt->n_workers == 0)
        opt->n_workers = 1;
    return r;
}

static void on_handed_over(void *ctx)
{
    const struct wg *wg = ctx;

    log_info("%s stays, for another process", arg.ifname);
    wakeup_signal(wg->end_fd);
}

static void on_gone(void *ctx)
{
    const struct wg *wg = ctx;

    log_info("%s was deleted", arg.ifname);
    wakeup_signal(wg->end_fd);
}

static void wg_stop(struct wg *wg)
{
    wg->paths = frame_socket_free(wg->paths);
    wg->uapi = uapi_server_free(wg->uapi);
    if (wg->port) {
        port_stop(wg->port);
        timestamp_file_end(
            &wg->timestamps, port_bound_timestamps(wg->port, &wg->timestamps.bounds), clock_now());
    }
    wg->device = device_free(wg->device);
    wg->port = port_free(wg->port);
    if (wg->end_fd >= 0)
        (void)close(wg->end_fd);
    wg->end_fd = -1;
}

/* Where the time of handshakes is kept; "": nowhere. As root: the folder is made. */
static void find_timestamps(char ret[static PATH_MAX])
{
    struct err e = ERR_NULL;

    ret[0] = '\0';
    if (arg.timestamps)
        (void)snprintf(ret, PATH_MAX, "%s", arg.timestamps);
    else if (strchr(arg.ifname, '%'))
        log_info("%s: what handshakes are dated is not kept, as the name is not known yet; see "
                 "--timestamps",
            arg.ifname);
    else if (statefile_make_dir(TIMESTAMPS_DIR, 0700, &e) < 0 || access(TIMESTAMPS_DIR, W_OK) < 0)
        log_info("%s: what handshakes are dated is not kept: %s", arg.ifname,
            err_text(&e)[0] ? err_text(&e) : TIMESTAMPS_DIR " is not for this user");
    else
        (void)snprintf(ret, PATH_MAX, TIMESTAMPS_DIR "/%s", arg.ifname);
}

/*
 * The port to listen on is set later, through the socket, and may be one below 1024. To follow the
 * interface into another network namespace takes CAP_NET_BROADCAST (net/netlink/link_watch.h).
 */
static int drop_privileges(
    const char *timestamps, char said[static PRIVILEGES_SAID_MAX], struct err *e)
{
    struct privileges p = {.kind = SANDBOX_WG,
        .user = arg.user,
        .capabilities = SANDBOX_CAP(CAP_NET_ADMIN) | SANDBOX_CAP(CAP_NET_BIND_SERVICE) |
                        SANDBOX_CAP(CAP_NET_BROADCAST),
        .has_tunnel = true,
        .said = said};
    char socket_buf[SOCKET_PATH_CAP];
    char frame_socket_buf[SOCKET_PATH_CAP];
    char folder[PATH_MAX];
    char own[PATH_MAX];

    privileges_add_folder_of(&p, socket_path(socket_buf), folder, PRIVILEGES_RUN);
    privileges_add(&p, socket_path(socket_buf), PRIVILEGES_SOCKET);
    if (!arg.socket)
        privileges_add(&p, frame_socket_path(frame_socket_buf), PRIVILEGES_SOCKET);
    if (timestamps[0] != '\0')
        privileges_add_folder_of(
            &p, timestamps, own, arg.timestamps ? PRIVILEGES_WRITE : PRIVILEGES_STATE);
    if (!getenv("WG_TUN_FD"))
        privileges_add(&p, "/dev/net/tun", PRIVILEGES_DEVICE);
    return privileges_drop(&p, e);
}

static int wg_start(struct wg *wg, char said[static PRIVILEGES_SAID_MAX], struct err *e)
{
    struct device_listener listener = {
        .on_gone = on_gone, .on_handed_over = on_handed_over, .ctx = wg};
    struct device_options device = {.name = arg.ifname,
        .takes_over = arg.take_over,
        .shows_dscp = arg.show_dscp,
        .rates = arg.rates,
        .cipher = arg.cipher};
    char path[SOCKET_PATH_CAP];
    char timestamps[PATH_MAX];
    struct port_options port;
    int uapi_fd;
    int r = take_port_options(&port, e);

    find_timestamps(timestamps);
    if (r == 0)
        r = drop_privileges(timestamps, said, e);
    *wg = (struct wg){.end_fd = wakeup_open()};
    if (wg->end_fd < 0)
        r = err_set(e, wg->end_fd, "cannot make an event descriptor: %s", strerror(-wg->end_fd));
    if (r == 0)
        r = env_fd("WG_TUN_FD", e, &device.tun_fd);
    if (r == 0)
        r = env_fd("WG_UAPI_FD", e, &uapi_fd);
    if (r == 0)
        r = port_new(&wg->port, &port, e);
    if (r == 0) {
        timestamp_file_open(
            &wg->timestamps, timestamps[0] ? timestamps : NULL, clock_wall(), clock_now());
        timestamp_file_warn_back(&wg->timestamps, clock_wall());
        (void)port_bound_timestamps(wg->port, &wg->timestamps.bounds);
    }
    device.n_workers = port.n_workers;
    if (r == 0)
        r = device_new(&wg->device, wg->port, &device, e);
    if (r == 0) {
        device_set_listener(wg->device, &listener);
        r = port_start(wg->port, e);
    }
    if (r == 0)
        r = uapi_server_new(&wg->uapi, wg->device, socket_path(path), uapi_fd, e);
    if (r == 0 && !arg.socket)
        r = frame_socket_new(&wg->paths, wg->device, frame_socket_path(path), e);
    if (r < 0)
        wg_stop(wg);
    return r;
}

/* ---- life as a process ---- */

static void wait_end(struct wg *wg, int signal_fd)
{
    struct pollfd pfds[] = {
        {.fd = signal_fd, .events = POLLIN}, {.fd = wg->end_fd, .events = POLLIN}};
    int each_ms = wg->timestamps.path[0] != '\0' ? TIMESTAMPS_EACH_MS : -1;
    nsec_t sent;
    int n;

    while ((n = poll(pfds, 2, each_ms)) == 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        /* Writes to the disk in this thread, which has nothing else to do: a disk that hangs delays
         * no handshake. */
        sent = port_bound_timestamps(wg->port, &wg->timestamps.bounds);
        if (timestamp_file_keep(&wg->timestamps, sent, clock_wall(), clock_now()))
            (void)port_bound_timestamps(wg->port, &wg->timestamps.bounds);
    }
}

/* Standard output and error stay only where the person asked for a log. */
static void leave_terminal(void)
{
    const char *level = getenv("LOG_LEVEL");
    bool keep = level && *level && strcmp(level, "silent") != 0;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    if (fd < 0)
        return;
    (void)dup2(fd, STDIN_FILENO);
    if (!keep) {
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
    }
    (void)close(fd);
    if (chdir("/") < 0)
        log_warning("cannot leave the working directory: %s", strerror(errno));
}

/* Runs until the end. @ready_fd: gets a byte, and is closed, once everything is there; -1: none. */
static int run(int ready_fd)
{
    _cleanup_(closep) int signal_fd = end_signals_open();
    char said[PRIVILEGES_SAID_MAX];
    struct err e = ERR_NULL;
    struct wg wg;

    if (signal_fd < 0)
        return cmd_fail("wg", "cannot wait for signals: %s", strerror(-signal_fd));
    if (wg_start(&wg, said, &e) < 0)
        return cmd_fail("wg", "%s", err_text(&e));
    log_info("%s", said);
    log_info("%s is there, configured through its socket", device_name(wg.device));
    if (ready_fd >= 0) {
        ssize_t n;

        leave_terminal();
        n = write(ready_fd, "", 1);

        (void)close(ready_fd);
        if (n < 0)
            log_warning("whoever started this has gone: %s", strerror(errno));
    }
    wait_end(&wg, signal_fd);
    wg_stop(&wg);
    return CMD_OK;
}

static int run_in_background(void)
{
    char byte;
    ssize_t n;
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return cmd_fail("wg", "cannot make a pipe: %s", strerror(errno));
    child = fork();
    if (child < 0)
        return cmd_fail("wg", "cannot start a process: %s", strerror(errno));
    if (child > 0) {
        (void)close(fds[1]);
        /* The child's byte says that everything is there. Without it the child has failed, and has
         * said why on the same standard error. */
        do
            n = read(fds[0], &byte, 1);
        while (n < 0 && errno == EINTR);
        return n == 1 ? CMD_OK : CMD_FAILED;
    }
    (void)close(fds[0]);
    return run(fds[1]);
}

static void init_log(void)
{
    const char *text = getenv("LOG_LEVEL");
    enum log_level level = LOG_LEVEL_INFO;
    int fd;

    if (text && (strcmp(text, "verbose") == 0 || strcmp(text, "debug") == 0))
        level = LOG_LEVEL_DEBUG;
    else if (text && strcmp(text, "error") == 0)
        level = LOG_LEVEL_ERROR;
    log_init("wg", level);
    if (!text || strcmp(text, "silent") != 0)
        return;
    fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)dup2(fd, STDERR_FILENO);
}

/* ---- asking a running one ---- */

static int print_stats(void)
{
    static const char request[] = "stats=1\n\n";
    char buf[4096];
    char text[SOCKET_PATH_CAP];
    const char *path = socket_path(text);
    _cleanup_(closep) int fd = unix_socket_connect(path, SOCK_STREAM);
    ssize_t n;

    if (fd == -ENOENT || fd == -ECONNREFUSED)
        return cmd_fail("wg",
            "no weft wg runs %s here: nothing listens on %s; \"wg show\" lists the interfaces",
            arg.ifname, path);
    if (fd < 0)
        return cmd_fail("wg", "cannot reach %s: %s", path, strerror(-fd));
    if (write(fd, request, sizeof(request) - 1) < 0 || shutdown(fd, SHUT_WR) < 0)
        return cmd_fail("wg", "cannot ask %s: %s", path, strerror(errno));
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        (void)fwrite(buf, 1, (size_t)n, stdout);
    return n < 0 ? cmd_fail("wg", "no answer from %s: %s", path, strerror(errno)) : CMD_OK;
}

int cmd_wg(int argc, char **argv)
{
    const char *fg = getenv("WG_PROCESS_FOREGROUND");
    int status;

    arg.offloads = offloads_all();
    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.stats)
        return print_stats();
    init_log();
    if (arg.foreground || (fg && strcmp(fg, "1") == 0))
        return run(-1);
    return run_in_background();
}
