/* machine_sample.c - see machine_sample.h. */
#include "fabric/machine_sample.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define PATH_LEN (PATH_MAX / 8)

/* Longest file of /proc that is read: a line for each core, and there may be 512. */
#define TEXT_MAX 65536

/* ---- numbers in files ------------------------------------------------------------------------ */

/* Adds the number in a file; false: there is none. */
static bool add_file(const struct tree *t, uint64_t *sum, const char *dir, const char *file)
{
    char path[PATH_LEN];
    char text[32];
    char *end;
    uint64_t n;

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path) ||
        !tree_read(t, path, text, sizeof(text)) || !isdigit((unsigned char)text[0]))
        return false;
    n = strtoull(text, &end, 10);
    if (*end != '\0')
        return false;
    *sum += n;
    return true;
}

/* Adds the numbers in the files that @names lists up to NULL. */
static uint64_t sum_files(const struct tree *t, const char *dir, const char *const names[])
{
    uint64_t sum = 0;

    for (unsigned i = 0; names[i]; i++)
        (void)add_file(t, &sum, dir, names[i]);
    return sum;
}

static void set(struct machine_sample *s, enum machine_counter c, uint64_t value)
{
    s->counters[c] += value;
    s->has[c] = true;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

#define NET "/sys/class/net"

static void read_nics(struct machine_sample *ret, const struct tree *t)
{
    static const char *const packets[] = {"rx_packets", "tx_packets", NULL};
    /* Not rx_dropped, which counts what nobody wanted as well. */
    static const char *const dropped[] = {
        "rx_missed_errors", "rx_over_errors", "rx_fifo_errors", "tx_fifo_errors", NULL};
    static const char *const errors[] = {
        "rx_crc_errors", "rx_frame_errors", "rx_length_errors", "tx_carrier_errors", NULL};
    char names[MACHINE_NICS_MAX][TREE_NAME_MAX];
    size_t n = tree_list(t, NET, names, MACHINE_NICS_MAX);

    for (size_t i = 0; i < n; i++) {
        struct machine_nic *nic = &ret->nics[ret->n_nics];
        char dir[PATH_LEN];

        (void)snprintf(dir, sizeof(dir), NET "/%s/device", names[i]);
        /* Bridges, tunnels and ends of virtual cables have none. */
        if (!tree_has(t, dir) ||
            snprintf(nic->name, sizeof(nic->name), "%s", names[i]) >= (int)sizeof(nic->name))
            continue;
        (void)snprintf(dir, sizeof(dir), NET "/%s/statistics", names[i]);
        nic->packets = sum_files(t, dir, packets);
        nic->dropped = sum_files(t, dir, dropped);
        nic->errors = sum_files(t, dir, errors);
        ret->n_nics++;
    }
}

/* ---- fabric ports ---------------------------------------------------------------------------- */

#define VERBS "/sys/class/infiniband"

static void read_port(
    struct machine_sample *ret, const struct tree *t, const char *device, const char *port)
{
    static const char *const errors[] = {"counters/symbol_error", "counters/port_rcv_errors",
        "counters/local_link_integrity_errors", "counters/excessive_buffer_overrun_errors",
        "counters/port_xmit_discards", "hw_counters/rx_icrc_encapsulated",
        "hw_counters/packet_seq_err", "hw_counters/out_of_buffer", "hw_counters/rx_drops", NULL};
    struct machine_port *p = &ret->ports[ret->n_ports];
    char dir[PATH_LEN];
    char path[PATH_LEN];
    char text[64];

    if (ret->n_ports == MACHINE_PORTS_MAX ||
        snprintf(p->name, sizeof(p->name), "%s/%s", device, port) >= (int)sizeof(p->name) ||
        snprintf(dir, sizeof(dir), VERBS "/%s/ports/%s", device, port) >= (int)sizeof(dir) ||
        snprintf(path, sizeof(path), "%s/state", dir) >= (int)sizeof(path))
        return;
    p->is_active = tree_read(t, path, text, sizeof(text)) && strstr(text, "ACTIVE");
    p->errors = sum_files(t, dir, errors);
    (void)add_file(t, &p->downed, dir, "counters/link_downed");
    ret->n_ports++;
}

static void read_ports(struct machine_sample *ret, const struct tree *t)
{
    char devices[MACHINE_PORTS_MAX][TREE_NAME_MAX];
    size_t n = tree_list(t, VERBS, devices, MACHINE_PORTS_MAX);

    for (size_t i = 0; i < n; i++) {
        char ports[4][TREE_NAME_MAX];
        char dir[PATH_LEN];
        size_t n_ports;

        (void)snprintf(dir, sizeof(dir), VERBS "/%s/ports", devices[i]);
        n_ports = tree_list(t, dir, ports, 4);
        for (size_t k = 0; k < n_ports; k++)
            read_port(ret, t, devices[i], ports[k]);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* The rest of the line that begins with @head; NULL: there is none. */
static const char *find_line(const char *text, const char *head)
{
    size_t len = strlen(head);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, head, len) == 0)
            return line + len;
    }
    return NULL;
}

/* The column of @name in a table of two lines that begin with @head: names, and numbers below
 * them. Source: proc(5), /proc/net/snmp. */
static bool find_column(const char *text, const char *head, const char *name, uint64_t *ret)
{
    const char *names = find_line(text, head);
    const char *numbers = names ? find_line(names, head) : NULL;
    size_t len = strlen(name);

    while (numbers && *names != '\n' && *names != '\0') {
        names += strspn(names, " ");
        numbers += strspn(numbers, " ");
        if (strncmp(names, name, len) == 0 && strchr(" \n", names[len])) {
            *ret = strtoull(numbers, NULL, 10);
            return isdigit((unsigned char)*numbers);
        }
        names += strcspn(names, " \n");
        numbers += strcspn(numbers, " \n");
    }
    return false;
}

static void read_protocols(struct machine_sample *ret, const struct tree *t, char *text)
{
    static const struct {
        const char *head;
        const char *name;
        enum machine_counter counter;
    } columns[] = {
        {"Udp:", "InDatagrams", MACHINE_UDP_IN},
        {"Udp:", "RcvbufErrors", MACHINE_UDP_DROPS},
        {"Tcp:", "OutSegs", MACHINE_TCP_OUT},
        {"Tcp:", "RetransSegs", MACHINE_TCP_AGAIN},
    };
    static const struct {
        const char *head;
        enum machine_counter counter;
    } lines[] = {{"Udp6InDatagrams ", MACHINE_UDP_IN}, {"Udp6RcvbufErrors ", MACHINE_UDP_DROPS}};
    uint64_t n;

    (void)tree_read(t, "/proc/net/snmp", text, TEXT_MAX);
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        if (find_column(text, columns[i].head, columns[i].name, &n))
            set(ret, columns[i].counter, n);
    (void)tree_read(t, "/proc/net/snmp6", text, TEXT_MAX);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const char *rest = find_line(text, lines[i].head);

        if (rest)
            set(ret, lines[i].counter, strtoull(rest, NULL, 10));
    }
}

/* A line for each core, of numbers in hexadecimal; the second one is what its backlog dropped. */
static void read_backlog(struct machine_sample *ret, const struct tree *t, char *text)
{
    if (!tree_read(t, "/proc/net/softnet_stat", text, TEXT_MAX))
        return;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char *end;

        line += *line == '\n';
        (void)strtoull(line, &end, 16);
        if (*end == ' ')
            set(ret, MACHINE_BACKLOG_DROPS, strtoull(end, NULL, 16));
    }
}

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE": the guests are in the
 * first two already. */
static void read_ticks(struct machine_sample *ret, const struct tree *t, char *text)
{
    const char *at = tree_read(t, "/proc/stat", text, TEXT_MAX) ? find_line(text, "cpu ") : NULL;

    for (unsigned i = 0; at && i < 8; i++) {
        char *end;
        uint64_t ticks = strtoull(at, &end, 10);

        if (end == at)
            break;
        at = end;
        set(ret, MACHINE_CPU_TICKS, ticks);
        if (i == 3 || i == 4)
            set(ret, MACHINE_CPU_IDLE, ticks);
    }
}

/* Control groups of version 2 alone: "0::/system.slice/weft-agent.service". */
static void read_throttled(struct machine_sample *ret, const struct tree *t, char *text)
{
    char path[PATH_LEN];
    const char *group =
        tree_read(t, "/proc/self/cgroup", text, TEXT_MAX) ? find_line(text, "0::") : NULL;
    const char *rest;

    if (!group || snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cpu.stat",
                      (int)strcspn(group, "\n"), group) >= (int)sizeof(path))
        return;
    rest = tree_read(t, path, text, TEXT_MAX) ? find_line(text, "throttled_usec ") : NULL;
    if (rest)
        set(ret, MACHINE_THROTTLED_US, strtoull(rest, NULL, 10));
}

#define CORES     "/sys/devices/system/cpu"
#define CORES_MAX 512

static void read_hot(struct machine_sample *ret, const struct tree *t)
{
    uint64_t sum = 0;
    bool is_known = false;

    for (unsigned i = 0; i < CORES_MAX; i++) {
        char dir[PATH_LEN];

        (void)snprintf(dir, sizeof(dir), CORES "/cpu%u", i);
        if (!tree_has(t, dir))
            break;
        is_known |= add_file(t, &sum, dir, "thermal_throttle/core_throttle_count");
    }
    if (is_known)
        set(ret, MACHINE_HOT_EVENTS, sum);
}

static void read_disk(struct machine_sample *ret, const char *dir)
{
    struct statvfs s;

    if (statvfs(dir, &s) < 0)
        return;
    ret->disk_all = (uint64_t)s.f_blocks * s.f_frsize;
    ret->disk_free = (uint64_t)s.f_bavail * s.f_frsize;
    /* Some file systems have no number of files, and say 0 of 0. */
    ret->has_files = s.f_files > 0;
    ret->files_free = s.f_favail;
}

void machine_sample_read(
    struct machine_sample *ret, const struct tree *t, const char *state_dir, nsec_t now)
{
    char *text = malloc(TEXT_MAX);

    *ret = (struct machine_sample){.at = now};
    read_nics(ret, t);
    read_ports(ret, t);
    read_hot(ret, t);
    read_disk(ret, state_dir);
    if (!text)
        return;
    read_protocols(ret, t, text);
    read_backlog(ret, t, text);
    read_ticks(ret, t, text);
    read_throttled(ret, t, text);
    free(text);
}
