/* nccl_log.c - see nccl_log.h. */
#include "train/profile/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "train/profile/profile.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Copies text up to the end of the line, without what could move a terminal's cursor. */
static void copy(char *ret, size_t cap, const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < cap; i++)
        ret[n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

/* The text after the first @words in the line; NULL: they are not in it. */
static const char *after(const char *line, size_t len, const char *words)
{
    const char *found = memmem(line, len, words, strlen(words));

    return found ? found + strlen(words) : NULL;
}

/*
 * Lines that say why a network was passed over, as they stand in NCCL (src/plugin, src/transport)
 * and in aws-ofi-nccl, of several versions. Those that say more have more weight.
 */
static const struct {
    const char *words;
    unsigned weight;
} causes[] = {
    {"NET/Plugin : No plugin found", 1},
    {"NET/Plugin: No plugin found", 1},
    {"NET/Plugin: Could not find", 1},
    {"External network plugin", 2},
    {"NET/IB : No device found", 2},
    {"Failed to initialize NET plugin", 2},
    {"NET/Plugin : Plugin load", 3},
    {"cannot open shared object file", 3},
    {"undefined symbol", 3},
    {"Failed to initialize any NET plugin", 3},
    {"NET/OFI Couldn't find any", 4},
    {"NET/OFI Unable to find", 4},
    {"NET/OFI Failed to initialize", 4},
    {"Disabling external plugins", 4},
    {"NCCL_IB_DISABLE set by environment to 1", 5},
    {"NCCL_NET set by environment to Socket", 5},
    {"Error: network ", 5},
};

static void take_cause(struct nccl_log *log, const char *line, size_t len)
{
    const char *text = after(line, len, "NCCL INFO ");

    if (!text)
        text = after(line, len, "NCCL WARN ");
    if (!text)
        return;
    len -= (size_t)(text - line);
    for (size_t i = 0; i < COUNT(causes); i++)
        if (causes[i].weight >= log->cause_weight && after(text, len, causes[i].words)) {
            copy(log->cause, sizeof(log->cause), text, len);
            log->cause_weight = causes[i].weight;
        }
}

/* "NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"; older ones: "Selected
 * Provider". */
static void take_provider(struct nccl_log *log, const char *line, size_t len)
{
    const char *text = after(line, len, "NET/OFI Selected ");
    const char *end = line + len;
    const char *found;

    if (!text || end - text < 12)
        return;
    text += strlen("provider is ");
    if (text >= end)
        return;
    found = after(text, (size_t)(end - text), "(found ");
    copy(log->provider, sizeof(log->provider), text, strcspn(text, ", ("));
    if (found)
        log->n_nics = (unsigned)strtoul(found, NULL, 10);
}

/* "NET/Socket : Using [0]weft0:10.42.0.7<0> [1]eth0:10.0.0.7<0>": the names of the interfaces. */
static void take_sockets(struct nccl_log *log, const char *text, size_t len)
{
    const char *at = after(text, len, "NET/Socket : Using ");
    size_t n = 0;

    if (!at)
        return;
    while ((at = strchr(at, ']'))) {
        size_t name = strcspn(++at, ":");

        if (n + name + 2 > sizeof(log->sockets))
            break;
        if (n > 0)
            log->sockets[n++] = ',';
        memcpy(log->sockets + n, at, name);
        n += name;
        at += name;
    }
    log->sockets[n] = '\0';
}

bool nccl_log_take(struct nccl_log *log, const char *line, size_t len)
{
    char text[1024];
    const char *found;

    copy(text, sizeof(text), line, len);
    len = strlen(text);
    if (++log->n_lines > NCCL_LOG_LINES_MAX)
        return false;
    found = after(text, len, "NCCL version ");
    if (found)
        copy(log->version, sizeof(log->version), found, strcspn(found, "+ "));
    take_provider(log, text, len);
    take_sockets(log, text, len);
    take_cause(log, text, len);
    found = after(text, len, "NCCL INFO Using network ");
    if (found)
        copy(log->network, sizeof(log->network), found, strlen(found));
    return log->network[0] == '\0';
}

enum nccl_log_verdict nccl_log_judge(const struct nccl_log *log, const struct profile *wanted,
    size_t n_devices, const char *interface, struct str *out)
{
    bool uses_sockets = strcmp(log->network, "Socket") == 0 && log->sockets[0] != '\0';

    if (log->network[0] == '\0') {
        str_addf(out, "NCCL has not said which network it uses%s%s",
            log->cause[0] != '\0' ? "; its last word on that: " : "", log->cause);
        return NCCL_LOG_UNKNOWN;
    }
    if (!profile_takes(wanted, log->network)) {
        str_addf(out, "the fabric profile %s was wanted, and NCCL uses %s: %s", wanted->name,
            log->network, log->cause[0] != '\0' ? log->cause : "its log does not say why");
        return NCCL_LOG_OTHER;
    }
    if (uses_sockets && interface && strcmp(log->sockets, interface) != 0) {
        str_addf(out,
            "NCCL was to use %s, and uses sockets on %s, whose addresses other nodes may not reach",
            interface, log->sockets);
        return NCCL_LOG_OTHER;
    }
    str_addf(out, "NCCL uses %s%s%s, as the fabric profile %s wants", log->network,
        uses_sockets ? " on " : "", uses_sockets ? log->sockets : "", wanted->name);
    if (log->provider[0] != '\0')
        str_addf(out, ", by libfabric's %s", log->provider);
    if (log->n_nics > 0 && n_devices > 0 && log->n_nics < n_devices)
        str_addf(out, "; but with %u of %zu devices", log->n_nics, n_devices);
    return NCCL_LOG_WANTED;
}
