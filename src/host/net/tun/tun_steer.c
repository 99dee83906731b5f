/*
 * tun_steer.c - see tun_steer.h.
 *
 * The program is written in the kernel's instructions (Documentation/bpf), so
 * that no compiler for it is needed. Its loads are of the packet from the IP
 * header on, in host order; a packet that is too short ends it with 0.
 */
#include "net/tun/tun_steer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/parse.h"

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
static const struct bpf_insn by_class[] = {
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
    [TUN_STEER_CLASSES] = {by_class, sizeof(by_class) / sizeof(*by_class)},
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

int tun_steer(int fd, enum tun_steer_by by)
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
