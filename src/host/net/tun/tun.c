/* tun.c - see tun.h. */
#include "net/tun/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "net/tun/offload.h"
#include "os/file.h"

/* ---- which queue a packet waits in ---- */

/*
 * The programs are written in the kernel's instructions (Documentation/bpf), so
 * that no compiler for them is needed. Their loads are of the packet from the IP
 * header on, in host order; a packet that is too short ends them with 0.
 */

/* What the queue depends on. */
enum tun_steer_by {
    TUN_STEER_FLOWS,
    TUN_STEER_CLASSES, /* and flows */
};

/* Where tun_steer_prepare() has left each program's descriptor. */
static const char *const variables[] = {
    [TUN_STEER_FLOWS] = "WEFT_STEER_FD",
    [TUN_STEER_CLASSES] = "WEFT_STEER_CLASS_FD",
};

/* Registers: what a load gives, the hash, where the ports are, the class, and the packet. */
enum {
    LOADED = BPF_REG_0,
    HASH = BPF_REG_7,
    PORTS = BPF_REG_8,
    CLASS = BPF_REG_9,
    PACKET = BPF_REG_6
};

/* clang-format off */
#define INSN(op, dst, src, jump, value) \
    {.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (jump), .imm = (int32_t)(value)}
#define MOVE(dst, src)           INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value)          INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define DO(op, dst, value)       INSN(BPF_ALU | (op) | BPF_K, dst, 0, 0, value)
#define DO_REG(op, dst, src)     INSN(BPF_ALU | (op) | BPF_X, dst, src, 0, 0)
#define LOAD(size, at)           INSN(BPF_LD | BPF_ABS | (size), 0, 0, 0, at)
#define LOAD_PORTS               INSN(BPF_LD | BPF_IND | BPF_W, 0, PORTS, 0, 0)
#define SKIP_IF(op, value, n)    INSN(BPF_JMP | (op) | BPF_K, LOADED, 0, n, value)
#define SKIP(n)                  INSN(BPF_JMP | BPF_JA, 0, 0, n, 0)
#define END                      INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Two instructions: one more word of the address. */
#define ADD_WORD(at)             LOAD(BPF_W, at), DO_REG(BPF_XOR, HASH, LOADED)

/* Four: the bits of the hash spread, so that near ports are far apart. */
#define SPREAD(factor) \
    DO_REG(BPF_MOV, LOADED, HASH), DO(BPF_RSH, LOADED, 16), DO_REG(BPF_XOR, HASH, LOADED), \
    DO(BPF_MUL, HASH, factor)

#define FRAGMENT_BITS 0x3fff /* RFC 791: more fragments, and the offset */

/* The class of each precedence, two bits each from 0 to 7: normal, bulk, three times priority, and
 * three times control. */
#define CLASS_TABLE 0x15e
#define CLASS_BULK  3
#define DSCP_LE     1 /* RFC 8622 */

/* The class, by the DSCP: into CLASS. A packet that is not IP ends the program with 0. */
#define FIND_CLASS                                                    \
    LOAD(BPF_B, 0),                                                   \
    DO(BPF_RSH, LOADED, 4),                                           \
    SKIP_IF(BPF_JEQ, 6, 5), /* to IPv6 */                             \
    SKIP_IF(BPF_JEQ, 4, 2),                                           \
    SET(LOADED, 0),                                                   \
    END,                                                              \
    LOAD(BPF_B, 1),                                                   \
    SKIP(3), /* to the DSCP */                                        \
    LOAD(BPF_H, 0),                                                   \
    DO(BPF_RSH, LOADED, 4),                                           \
    DO(BPF_AND, LOADED, 0xff),                                        \
    DO(BPF_RSH, LOADED, 2),                                           \
    SET(CLASS, CLASS_BULK),                                           \
    SKIP_IF(BPF_JEQ, DSCP_LE, 5), /* to the end */                    \
    DO(BPF_RSH, LOADED, 3),                                           \
    DO(BPF_LSH, LOADED, 1),                                           \
    SET(CLASS, CLASS_TABLE),                                          \
    DO_REG(BPF_RSH, CLASS, LOADED),                                   \
    DO(BPF_AND, CLASS, 3)

/* The flow's hash, by addresses, protocol and ports: 16 bits into LOADED. */
#define FIND_FLOW                                                     \
    SET(HASH, 0),                                                     \
    LOAD(BPF_B, 0),                                                   \
    MOVE(PORTS, LOADED),                                              \
    DO(BPF_RSH, LOADED, 4),                                           \
    SKIP_IF(BPF_JEQ, 6, 13), /* to IPv6 */                            \
    SKIP_IF(BPF_JEQ, 4, 2),                                           \
    SET(LOADED, 0), /* Neither. */                                    \
    END,                                                              \
    /* IPv4. Only the first fragment has ports, so none of them    */ \
    /* counts in a fragment.                                       */ \
    DO(BPF_AND, PORTS, 15),                                           \
    DO(BPF_LSH, PORTS, 2),                                            \
    ADD_WORD(12),                                                     \
    ADD_WORD(16),                                                     \
    LOAD(BPF_H, 6),                                                   \
    SKIP_IF(BPF_JSET, FRAGMENT_BITS, 25), /* to the end */            \
    LOAD(BPF_B, 9),                                                   \
    SKIP(18), /* to the ports */                                      \
    /* IPv6. */                                                       \
    SET(PORTS, 40),                                                   \
    ADD_WORD(8),                                                      \
    ADD_WORD(12),                                                     \
    ADD_WORD(16),                                                     \
    ADD_WORD(20),                                                     \
    ADD_WORD(24),                                                     \
    ADD_WORD(28),                                                     \
    ADD_WORD(32),                                                     \
    ADD_WORD(36),                                                     \
    LOAD(BPF_B, 6),                                                   \
    /* The ports, of TCP and UDP. */                                  \
    DO_REG(BPF_ADD, HASH, LOADED),                                    \
    SKIP_IF(BPF_JEQ, IPPROTO_TCP, 1),                                 \
    SKIP_IF(BPF_JNE, IPPROTO_UDP, 2),                                 \
    LOAD_PORTS,                                                       \
    DO_REG(BPF_XOR, HASH, LOADED),                                    \
    /* The end: two rounds, and the upper half. */                    \
    SPREAD(0x85ebca6b),                                               \
    SPREAD(0xc2b2ae35),                                               \
    DO_REG(BPF_MOV, LOADED, HASH),                                    \
    DO(BPF_RSH, LOADED, 16)

static const struct bpf_insn by_flow[] = {
    MOVE(PACKET, BPF_REG_1),
    FIND_FLOW,
    END,
};

/* The queues of a class are those whose number has it in its last two bits. */
static const struct bpf_insn by_class_and_flow[] = {
    MOVE(PACKET, BPF_REG_1),
    FIND_CLASS,
    FIND_FLOW,
    DO(BPF_LSH, LOADED, 2),
    DO_REG(BPF_OR, LOADED, CLASS),
    END,
};
/* clang-format on */

static const struct {
    const struct bpf_insn *program;
    uint32_t n;
} programs[] = {
    [TUN_STEER_FLOWS] = {by_flow, sizeof(by_flow) / sizeof(*by_flow)},
    [TUN_STEER_CLASSES] = {by_class_and_flow,
        sizeof(by_class_and_flow) / sizeof(*by_class_and_flow)},
};

static int load_program(enum tun_steer_by by)
{
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
        .insns = (uintptr_t)programs[by].program,
        .insn_cnt = programs[by].n,
        .license = (uintptr_t) "Apache-2.0",
    };
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

    return fd < 0 ? -errno : (int)fd;
}

/* The descriptor that was prepared, by this process or by who started it; -1: none. */
static int prepared_fd(enum tun_steer_by by)
{
    const char *text = getenv(variables[by]);
    uint64_t fd;

    if (!text || parse_u64(&fd, text, STDERR_FILENO + 1, INT_MAX, variables[by], NULL) < 0)
        return -1;
    return (int)fd;
}

static void prepare(enum tun_steer_by by, bool for_children)
{
    char text[16];
    int fd;

    if (prepared_fd(by) >= 0)
        return;
    fd = load_program(by);
    if (fd < 0)
        return;
    if (for_children)
        (void)fcntl(fd, F_SETFD, 0);
    (void)snprintf(text, sizeof(text), "%d", fd);
    (void)setenv(variables[by], text, 1);
}

void tun_steer_prepare(bool for_children)
{
    prepare(TUN_STEER_FLOWS, for_children);
    prepare(TUN_STEER_CLASSES, for_children);
}

/* Steers the interface of queue @fd. 0; negative errno: it stays as it was. */
static int steer(int fd, enum tun_steer_by by)
{
    int program_fd = prepared_fd(by);
    bool is_ours = program_fd < 0;
    int r;

    if (is_ours)
        program_fd = load_program(by);
    if (program_fd < 0)
        return program_fd;
    r = ioctl(fd, TUNSETSTEERINGEBPF, &program_fd) < 0 ? -errno : 0;
    /* The interface keeps the program. */
    if (is_ours)
        (void)close(program_fd);
    return r;
}

/* ---- the interface ---- */

/* Since Linux 6.2; the headers of Debian 12 are older. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif
#ifndef TUNGETDEVNETNS
#define TUNGETDEVNETNS _IO('T', 227)
#endif

static void set_offloads(int fd, struct offloads *o)
{
    unsigned tso = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;

    if (o->on[OFFLOAD_USO] && !o->on[OFFLOAD_TSO])
        offload_off(o, OFFLOAD_USO, "the kernel has it only together with tso");
    if (o->on[OFFLOAD_USO] && ioctl(fd, TUNSETOFFLOAD, tso | TUN_F_USO4 | TUN_F_USO6) == 0)
        return;
    offload_off(o, OFFLOAD_USO, "the kernel refuses it: %s", strerror(errno));
    if (o->on[OFFLOAD_TSO] && ioctl(fd, TUNSETOFFLOAD, tso) == 0)
        return;
    offload_off(o, OFFLOAD_TSO, "the kernel refuses it: %s", strerror(errno));
    (void)ioctl(fd, TUNSETOFFLOAD, 0);
}

static int open_queue(const char *name, int more_flags, char ret_name[static IFNAMSIZ])
{
    _cleanup_(closep) int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq ifr = {0};

    if (fd < 0)
        return -errno;
    memcpy(ifr.ifr_name, name, strlen(name));
    ifr.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | more_flags);
    if (ioctl(fd, TUNSETIFF, &ifr) < 0)
        return -errno;
    memcpy(ret_name, ifr.ifr_name, IFNAMSIZ);
    return TAKE_FD(fd);
}

static int fail_open(const char *name, int r, struct err *e)
{
    if (r == -ENOENT || r == -ENODEV)
        return err_set(e, r, "cannot open /dev/net/tun: %s; load the tun module", strerror(-r));
    if (r == -EPERM || r == -EACCES)
        return err_set(e, r,
            "cannot create interface %s: it takes root, or CAP_NET_ADMIN and "
            "access to /dev/net/tun",
            name);
    if (r == -EBUSY)
        return err_set(e, r, "interface %s is in use by another process", name);
    if (r == -EINVAL && if_nametoindex(name) == 0)
        return err_set(e, r, "interface name \"%s\" is not one that the kernel takes", name);
    if (r == -EINVAL)
        return err_set(e, r, "interface %s exists and is of another kind", name);
    return err_set(e, r, "cannot create interface %s: %s", name, strerror(-r));
}

static bool has_flag(int fd, int flag)
{
    struct ifreq ifr = {0};

    return ioctl(fd, TUNGETIFF, &ifr) == 0 && (ifr.ifr_flags & flag);
}

/* A queue of an interface that is there already. */
static int attach(struct tun *t)
{
    _cleanup_(closep) int fd = open_queue(t->name, 0, t->name);

    if (fd != -EINVAL)
        return TAKE_FD(fd);
    /* The interface may have several queues, and the kernel gives a further one to anybody who
     * asks. */
    fd = open_queue(t->name, IFF_MULTI_QUEUE, t->name);
    if (fd >= 0 && !has_flag(fd, IFF_PERSIST))
        return -EBUSY;
    return TAKE_FD(fd);
}

static unsigned queues_each(unsigned n_readers)
{
    unsigned part = TUN_QUEUES_MAX / n_readers;

    if (part > TUN_QUEUES_EACH)
        part = TUN_QUEUES_EACH;
    /* So that each reader has queues of every class, and as many of each. */
    return part / TUN_STEER_N_CLASSES * TUN_STEER_N_CLASSES;
}

static int open_queues(struct tun *t, unsigned n_readers)
{
    int fd = open_queue(t->name, IFF_MULTI_QUEUE | IFF_TUN_EXCL, t->name);

    if (fd == -EBUSY) {
        fd = attach(t);
        t->was_there = fd >= 0;
    }
    if (fd >= 0 && !has_flag(fd, IFF_MULTI_QUEUE))
        n_readers = 1;
    else if (fd >= 0 && steer(fd, TUN_STEER_FLOWS) == 0)
        t->each = queues_each(n_readers);
    while (fd >= 0) {
        t->fd[t->n++] = fd;
        if (t->n == n_readers * t->each)
            return 0;
        fd = open_queue(t->name, IFF_MULTI_QUEUE, t->name);
    }
    return fd;
}

int tun_open(
    struct tun *ret, const char *name, unsigned n_readers, struct offloads *offloads, struct err *e)
{
    struct tun t = TUN_NULL;
    int r;

    if (name[0] == '\0' || strlen(name) >= IFNAMSIZ)
        return err_set(e, -EINVAL, "interface name \"%.40s\" must have 1 to 15 bytes", name);
    memcpy(t.name, name, strlen(name) + 1);
    r = open_queues(&t, n_readers);
    if (r < 0) {
        tun_close(&t);
        return fail_open(name, r, e);
    }
    set_offloads(t.fd[0], offloads);
    t.ifindex = if_nametoindex(t.name);
    *ret = t;
    return 0;
}

int tun_adopt(struct tun *ret, int fd, struct offloads *offloads, struct err *e)
{
    struct ifreq ifr = {0};
    struct tun t = {.fd = {fd}, .n = 1, .each = 1};

    if (ioctl(fd, TUNGETIFF, &ifr) < 0)
        return err_set(e, -errno, "descriptor %d is not a TUN interface: %s", fd, strerror(errno));
    if ((ifr.ifr_flags & (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)) !=
        (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
        return err_set(e, -EINVAL,
            "interface %.15s was opened without IFF_TUN, IFF_NO_PI or IFF_VNET_HDR", ifr.ifr_name);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return err_set(e, -errno, "cannot use descriptor %d: %s", fd, strerror(errno));
    memcpy(t.name, ifr.ifr_name, IFNAMSIZ);
    t.name[IFNAMSIZ - 1] = '\0';
    set_offloads(fd, offloads);
    t.ifindex = if_nametoindex(t.name);
    *ret = t;
    return 0;
}

void tun_close(struct tun *t)
{
    for (unsigned i = 0; i < t->n; i++)
        (void)close(t->fd[i]);
    t->n = 0;
}

int tun_set_persistent(const struct tun *t, bool stays)
{
    return ioctl(t->fd[0], TUNSETPERSIST, stays ? 1 : 0) < 0 ? -errno : 0;
}

static int set_by_name(const struct tun *t, unsigned long request, int value)
{
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = {.ifr_mtu = value}; /* ifr_qlen shares its place */

    if (fd < 0)
        return -errno;
    memcpy(ifr.ifr_name, t->name, IFNAMSIZ);
    return ioctl(fd, request, &ifr) < 0 ? -errno : 0;
}

int tun_set_mtu(const struct tun *t, unsigned mtu)
{
    return set_by_name(t, SIOCSIFMTU, (int)mtu);
}

int tun_set_queue_len(const struct tun *t, unsigned n_frames)
{
    return set_by_name(t, SIOCSIFTXQLEN, (int)n_frames);
}

int tun_set_classes(const struct tun *t, bool by_class)
{
    if (t->n == 0 || t->each % TUN_STEER_N_CLASSES != 0)
        return -EOPNOTSUPP;
    return steer(t->fd[0], by_class ? TUN_STEER_CLASSES : TUN_STEER_FLOWS);
}

/* The kernel's link settings, with room for the three masks of modes that follow them. */
union link_settings {
    struct ethtool_link_settings head;
    uint32_t space[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) + 3 * INT8_MAX];
};

int tun_set_speed(const struct tun *t, unsigned mbit)
{
    _cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    union link_settings link = {.head = {.cmd = ETHTOOL_GLINKSETTINGS}};
    struct ifreq ifr = {.ifr_data = (char *)&link};

    if (fd < 0)
        return -errno;
    memcpy(ifr.ifr_name, t->name, IFNAMSIZ);
    /* Asked with masks of no length it says, negative, how long its own are. */
    if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
        return -errno;
    if (link.head.link_mode_masks_nwords >= 0)
        return -EPROTO;
    link.head.link_mode_masks_nwords = (int8_t)-link.head.link_mode_masks_nwords;
    link.head.cmd = ETHTOOL_GLINKSETTINGS;
    if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
        return -errno;
    link.head.cmd = ETHTOOL_SLINKSETTINGS;
    link.head.speed = mbit;
    link.head.duplex = DUPLEX_FULL;
    return ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

int tun_name(const struct tun *t, char ret[static IFNAMSIZ])
{
    struct ifreq ifr = {0};

    if (ioctl(t->fd[0], TUNGETIFF, &ifr) < 0)
        return -errno;
    memcpy(ret, ifr.ifr_name, IFNAMSIZ);
    ret[IFNAMSIZ - 1] = '\0';
    return 0;
}

int tun_netns(const struct tun *t)
{
    int fd = ioctl(t->fd[0], TUNGETDEVNETNS);

    return fd < 0 ? -errno : fd;
}
