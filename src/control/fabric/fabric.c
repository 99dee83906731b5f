/* fabric.c - see fabric.h. */
#include "fabric/fabric.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "mesh/object/node_status.h"
#include "os/process.h"

#define VENDOR_NVIDIA "0x10de"

const char *const fabric_kind_names[] = {
    [FABRIC_EFA] = "efa",
    [FABRIC_INFINIBAND] = "infiniband",
    [FABRIC_GCE_RDMA] = "gce-rdma",
    [FABRIC_TCPXO] = "tcpxo",
    [FABRIC_TCPX] = "tcpx",
    [FABRIC_ROCE] = "roce",
    [FABRIC_GVNIC] = "gvnic",
    [FABRIC_ETHERNET] = "ethernet",
};
_Static_assert(sizeof(fabric_kind_names) / sizeof(*fabric_kind_names) == FABRIC_KIND_N,
    "a name for each kind");

enum fabric_kind fabric_kind_parse(const char *name)
{
    return (enum fabric_kind)parse_word(name, fabric_kind_names, FABRIC_KIND_N);
}

bool fabric_kind_is_fast(enum fabric_kind kind)
{
    return kind < FABRIC_GVNIC;
}

bool fabric_kind_is_verbs(enum fabric_kind kind)
{
    return kind == FABRIC_INFINIBAND || kind == FABRIC_ROCE;
}

bool fabric_kind_has_plugin(enum fabric_kind kind)
{
    return fabric_kind_is_fast(kind) && !fabric_kind_is_verbs(kind);
}

static void claim(struct fabric_facts *f, const char *what, const char *source, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));

/* What does not fit is left out: a claim informs, and nothing is decided by it. */
static void claim(
    struct fabric_facts *f, const char *what, const char *source, const char *fmt, ...)
{
    struct fabric_claim *c = &f->claims[f->n_claims];
    va_list args;

    if (f->n_claims == FABRIC_CLAIMS_MAX)
        return;
    (void)snprintf(c->what, sizeof(c->what), "%s", what);
    (void)snprintf(c->source, sizeof(c->source), "%s", source);
    va_start(args, fmt);
    (void)vsnprintf(c->value, sizeof(c->value), fmt, args);
    va_end(args);
    f->n_claims++;
}

/* Reads a small file whose path is made of parts. */
static bool read_part(const struct tree *t, char *ret, size_t cap, const char *dir,
    const char *name, const char *file)
{
    char path[PATH_MAX / 8];

    return snprintf(path, sizeof(path), "%s/%s/%s", dir, name, file) < (int)sizeof(path) &&
           tree_read(t, path, ret, cap);
}

/* Takes the driver from a device's uevent: "DRIVER=efa". */
static bool read_driver(
    const struct tree *t, char ret[static FABRIC_NAME_MAX], const char *dir, const char *name)
{
    char text[1024];
    const char *line;

    ret[0] = '\0';
    if (!read_part(t, text, sizeof(text), dir, name, "device/uevent"))
        return false;
    line = strncmp(text, "DRIVER=", 7) == 0 ? text : strstr(text, "\nDRIVER=");
    if (line)
        (void)snprintf(ret, FABRIC_NAME_MAX, "%.*s", (int)strcspn(strchr(line, '=') + 1, "\n"),
            strchr(line, '=') + 1);
    return true;
}

/* ---- verbs devices -------------------------------------------------------------------------- */

#define VERBS "/sys/class/infiniband"

/* Fills in a device. False: it is not of a kind that NCCL could use. */
static bool read_device(
    struct fabric_device *ret, const struct tree *t, const char name[static TREE_NAME_MAX])
{
    char driver[FABRIC_NAME_MAX];
    char text[64];

    if (snprintf(ret->name, sizeof(ret->name), "%s", name) >= (int)sizeof(ret->name))
        return false;
    (void)read_driver(t, driver, VERBS, name);
    (void)read_part(t, text, sizeof(text), VERBS, name, "ports/1/link_layer");
    if (strcmp(driver, "efa") == 0)
        ret->link = FABRIC_LINK_EFA;
    else if (strcmp(text, "InfiniBand") == 0)
        ret->link = FABRIC_LINK_INFINIBAND;
    else if (strcmp(text, "Ethernet") == 0)
        ret->link = FABRIC_LINK_ETHERNET;
    else
        return false;
    ret->is_active =
        read_part(t, text, sizeof(text), VERBS, name, "ports/1/state") && strstr(text, "ACTIVE");
    if (read_part(t, text, sizeof(text), VERBS, name, "ports/1/rate"))
        ret->gbit = (unsigned)strtoul(text, NULL, 10);
    if (ret->link == FABRIC_LINK_INFINIBAND &&
        read_part(t, text, sizeof(text), VERBS, name, "ports/1/gids/0") && strlen(text) > 19)
        (void)snprintf(ret->subnet, sizeof(ret->subnet), "%.19s", text);
    return true;
}

static size_t count_active(const struct fabric_facts *f, enum fabric_link link)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_devices; i++)
        n += f->devices[i].link == link && f->devices[i].is_active;
    return n;
}

bool fabric_device_serves(const struct fabric_device *d, const struct fabric_facts *f)
{
    enum fabric_link link = f->kind == FABRIC_EFA          ? FABRIC_LINK_EFA
                            : f->kind == FABRIC_INFINIBAND ? FABRIC_LINK_INFINIBAND
                                                           : FABRIC_LINK_ETHERNET;
    unsigned best = 0;

    if (f->kind != FABRIC_EFA && f->kind != FABRIC_INFINIBAND && f->kind != FABRIC_GCE_RDMA &&
        f->kind != FABRIC_ROCE)
        return false;
    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].link == link && f->devices[i].is_active && f->devices[i].gbit > best)
            best = f->devices[i].gbit;
    return d->link == link && d->is_active && 2 * d->gbit >= best;
}

size_t fabric_count_serving(const struct fabric_facts *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_devices; i++)
        n += fabric_device_serves(&f->devices[i], f);
    return n;
}

static void claim_devices(struct fabric_facts *f, enum fabric_link link, const char *what)
{
    unsigned gbit = 0;
    const char *first = NULL;
    size_t all = 0;

    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].link == link) {
            first = first ? first : f->devices[i].name;
            gbit += f->devices[i].is_active ? f->devices[i].gbit : 0;
            all++;
        }
    if (all == 0)
        return;
    claim(f, "verbs", VERBS, "%zu of %zu %s ports active, %u Gbit/s in all; the first is %s",
        count_active(f, link), all, what, gbit, first);
}

/* ---- network interfaces --------------------------------------------------------------------- */

#define NET "/sys/class/net"

static void read_nics(struct fabric_facts *f, const struct tree *t)
{
    char names[FABRIC_NICS_MAX][TREE_NAME_MAX];
    size_t n = tree_list(t, NET, names, FABRIC_NICS_MAX);

    for (size_t i = 0; i < n; i++) {
        struct fabric_nic *nic = &f->nics[f->n_nics];

        if (snprintf(nic->name, sizeof(nic->name), "%s", names[i]) >= (int)sizeof(nic->name) ||
            !read_driver(t, nic->driver, NET, names[i]))
            continue;
        f->n_nics++;
    }
}

static size_t count_nics(const struct fabric_facts *f, const char *driver)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_nics; i++)
        n += strcmp(f->nics[i].driver, driver) == 0;
    return n;
}

static void claim_nics(struct fabric_facts *f)
{
    for (size_t i = 0; i < f->n_nics; i++) {
        const char *driver = f->nics[i].driver;
        bool is_new = true;

        for (size_t k = 0; k < i; k++)
            is_new = is_new && strcmp(f->nics[k].driver, driver) != 0;
        if (is_new)
            claim(f, "interfaces", NET, "%zu with the driver %s; the first is %s",
                count_nics(f, driver), driver[0] != '\0' ? driver : "(none)", f->nics[i].name);
    }
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

#define GPUS "/proc/driver/nvidia/gpus"
#define PCI  "/sys/bus/pci/devices"

#define PCI_MAX 1024

/* Counts PCI devices of NVIDIA's by the first digits of their class. */
static unsigned count_pci(
    const struct tree *t, char (*names)[TREE_NAME_MAX], size_t n, const char *class)
{
    unsigned count = 0;
    char text[32];

    for (size_t i = 0; i < n; i++)
        if (read_part(t, text, sizeof(text), PCI, names[i], "vendor") &&
            strcmp(text, VENDOR_NVIDIA) == 0 &&
            read_part(t, text, sizeof(text), PCI, names[i], "class") &&
            strncmp(text, class, strlen(class)) == 0)
            count++;
    return count;
}

/* The driver knows the model. Without the driver, PCI knows how many there are. */
static void read_gpus(struct fabric_facts *f, const struct tree *t)
{
    static char names[PCI_MAX][TREE_NAME_MAX];
    size_t n = tree_list(t, GPUS, names, PCI_MAX);
    char text[512];
    const char *model;
    unsigned n_switches;

    f->n_gpus = (unsigned)n;
    if (n > 0 && read_part(t, text, sizeof(text), GPUS, names[0], "information")) {
        model = strstr(text, "Model:");
        if (model) {
            model += strlen("Model:");
            model += strspn(model, " \t");
            (void)snprintf(f->gpu, sizeof(f->gpu), "%.*s", (int)strcspn(model, "\n"), model);
        }
    }
    if (n > 0)
        claim(f, "gpus", GPUS, "%zu of %s", n, f->gpu);
    n = tree_list(t, PCI, names, PCI_MAX);
    if (f->n_gpus == 0) {
        f->n_gpus = count_pci(t, names, n, "0x03");
        if (f->n_gpus > 0)
            claim(f, "gpus", PCI, "%u of NVIDIA's, without its driver", f->n_gpus);
    }
    /* NVSwitch is a bridge of the class "other" (0x0680). */
    n_switches = count_pci(t, names, n, "0x0680");
    if (n_switches > 0)
        claim(f, "nvlink", PCI,
            "%u NVSwitches: the GPUs of this machine reach each other by NVLink", n_switches);
}

/* ---- what lies on the disk ------------------------------------------------------------------ */

/* Sets @ret to the first of the files that is there. Each list ends with NULL. */
static bool find_file(
    char ret[static FABRIC_PATH_MAX], const struct tree *t, const char *const *files)
{
    for (; *files; files++)
        if (tree_has(t, *files)) {
            (void)snprintf(ret, FABRIC_PATH_MAX, "%s", *files);
            return true;
        }
    return false;
}

/* Where each plugin's own installer, or the cloud's image, puts it. */
static const char *const ofi_plugins[] = {
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so",
    "/opt/amazon/ofi-nccl/lib/aarch64-linux-gnu/libnccl-net-ofi.so",
    "/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so",
    "/opt/amazon/ofi-nccl/lib64/libnccl-net-ofi.so",
    "/opt/aws-ofi-nccl/lib/libnccl-net-ofi.so",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so",
    "/opt/amazon/ofi-nccl/lib/aarch64-linux-gnu/libnccl-net.so",
    "/opt/amazon/ofi-nccl/lib/libnccl-net.so",
    "/opt/aws-ofi-nccl/lib/libnccl-net.so",
    NULL,
};
static const char *const tcpxo_plugins[] = {
    "/var/lib/tcpxo/lib64/libnccl-net.so",
    "/usr/local/tcpxo/lib64/libnccl-net.so",
    "/usr/local/nvidia/lib64/libnccl-net.so",
    NULL,
};
static const char *const tcpx_plugins[] = {
    "/var/lib/tcpx/lib64/libnccl-net.so",
    "/usr/local/tcpx/lib64/libnccl-net.so",
    "/usr/local/nvidia/lib64/libnccl-net.so",
    NULL,
};
static const char *const gib_plugins[] = {"/usr/local/gib/lib64/libnccl-net.so", NULL};
static const char *const fastsocket_plugins[] = {
    "/usr/local/library/google-fast-socket/libnccl-net.so",
    "/usr/local/nvidia/lib64/libnccl-net.so",
    "/usr/lib/libnccl-net.so",
    NULL,
};
static const char *const tcpxo_tuners[] = {
    "/var/lib/tcpxo/lib64/a3plus_tuner_config.textproto",
    "/usr/local/tcpxo/lib64/a3plus_tuner_config.textproto",
    "/usr/local/nvidia/lib64/a3plus_tuner_config.textproto",
    NULL,
};
static const char *const tcpxo_checkers[] = {
    "/var/lib/tcpxo/lib64/a3plus_guest_config.textproto",
    "/usr/local/tcpxo/lib64/a3plus_guest_config.textproto",
    "/usr/local/nvidia/lib64/a3plus_guest_config.textproto",
    NULL,
};
static const char *const gib_a3_tuners[] = {"/usr/local/gib/configs/tuner_config_a3u.txtpb", NULL};
static const char *const gib_a4_tuners[] = {"/usr/local/gib/configs/tuner_config_a4.txtpb", NULL};
static const char *const azure_topologies[] = {
    "/opt/microsoft/ndv5-topo.xml", "/opt/microsoft/ndv4-topo.xml", NULL};

static bool is_machine(const struct fabric_facts *f, const char *prefix)
{
    return strncmp(f->place.machine, prefix, strlen(prefix)) == 0;
}

static void find_files(struct fabric_facts *f, const struct tree *t)
{
    bool is_a3 = is_machine(f, "a3-");

    switch (f->kind) {
    case FABRIC_EFA:
        (void)find_file(f->plugin, t, ofi_plugins);
        break;
    case FABRIC_TCPXO:
        (void)find_file(f->plugin, t, tcpxo_plugins);
        (void)find_file(f->tuner, t, tcpxo_tuners);
        (void)find_file(f->checker, t, tcpxo_checkers);
        break;
    case FABRIC_TCPX:
        (void)find_file(f->plugin, t, tcpx_plugins);
        break;
    case FABRIC_GCE_RDMA:
        (void)find_file(f->plugin, t, gib_plugins);
        (void)find_file(f->tuner, t, is_a3 ? gib_a3_tuners : gib_a4_tuners);
        break;
    case FABRIC_GVNIC:
        (void)find_file(f->plugin, t, fastsocket_plugins);
        break;
    case FABRIC_INFINIBAND:
        if (f->cloud == METADATA_CLOUD_AZURE)
            (void)find_file(f->topology, t, azure_topologies);
        break;
    case FABRIC_ROCE:
    case FABRIC_ETHERNET:
    case FABRIC_KIND_N:
        break;
    }
    if (f->plugin[0] != '\0')
        claim(f, "plugin", f->plugin, "the NCCL net plugin of this fabric is installed");
    if (f->topology[0] != '\0')
        claim(f, "topology", f->topology, "the image has a topology file for NCCL");
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool has_data_nics(const struct fabric_facts *f, const char *machine, size_t n)
{
    return is_machine(f, machine) && count_nics(f, "gve") > n;
}

/*
 * A verbs device without its file in /dev/infiniband is one that this container cannot open. On AWS
 * and Azure a verbs device with an Ethernet link is what accelerates the ordinary network;
 * nobody is reached by RoCE over it.
 */
static enum fabric_kind choose(const struct fabric_facts *f)
{
    bool has_roce = f->has_verbs_files && count_active(f, FABRIC_LINK_ETHERNET) > 0;

    if (f->has_verbs_files && count_active(f, FABRIC_LINK_EFA) > 0)
        return FABRIC_EFA;
    if (f->has_verbs_files && count_active(f, FABRIC_LINK_INFINIBAND) > 0)
        return FABRIC_INFINIBAND;
    if (f->cloud == METADATA_CLOUD_GCE) {
        if (has_roce && (is_machine(f, "a3-ultragpu-") || is_machine(f, "a4")))
            return FABRIC_GCE_RDMA;
        if (has_data_nics(f, "a3-megagpu-", 8))
            return FABRIC_TCPXO;
        if (has_data_nics(f, "a3-highgpu-8g", 4))
            return FABRIC_TCPX;
        return count_nics(f, "gve") > 0 ? FABRIC_GVNIC : FABRIC_ETHERNET;
    }
    return has_roce && f->cloud == METADATA_CLOUD_NONE ? FABRIC_ROCE : FABRIC_ETHERNET;
}

static void claim_place(struct fabric_facts *f)
{
    const struct metadata_place *p = &f->place;

    if (f->cloud != METADATA_CLOUD_NONE)
        claim(f, "cloud", "/sys/class/dmi/id", "%s", metadata_cloud_name(f->cloud));
    if (p->machine[0] != '\0')
        claim(f, "machine", "metadata", "%s in %s", p->machine, p->zone);
    if (p->group[0] != '\0')
        claim(f, "place", "metadata", "placement group %s", p->group);
    if (p->block[0] != '\0')
        claim(f, "place", "metadata", "block %s", p->block);
    if (f->fault[0] != '\0')
        claim(f, "place", "metadata", "%s", f->fault);
}

void fabric_read(struct fabric_facts *ret, const struct tree *t, enum fabric_view view,
    const struct metadata_answers *answers)
{
    char cpus[TREE_NAME_MAX];
    struct err e = ERR_NULL;
    char names[FABRIC_DEVICES_MAX][TREE_NAME_MAX];
    size_t n;

    *ret = (struct fabric_facts){.cloud = metadata_cloud_of(t)};
    if (answers && metadata_decode(&ret->place, answers, &e) != 0)
        (void)snprintf(ret->fault, sizeof(ret->fault), "%.*s", FABRIC_PATH_MAX - 1, err_text(&e));
    /* On AWS the product is the machine's type, which helps where the service is switched off. */
    if (ret->cloud == METADATA_CLOUD_AWS && ret->place.machine[0] == '\0')
        (void)tree_read(
            t, "/sys/class/dmi/id/product_name", ret->place.machine, sizeof(ret->place.machine));
    claim_place(ret);
    read_gpus(ret, t);
    n = tree_list(t, VERBS, names, FABRIC_DEVICES_MAX);
    for (size_t i = 0; i < n; i++) {
        ret->devices[ret->n_devices] = (struct fabric_device){.gbit = 0};
        ret->n_devices += read_device(&ret->devices[ret->n_devices], t, names[i]);
    }
    ret->has_verbs_files = tree_has(t, "/dev/infiniband");
    ret->has_verbs_files |= view == FABRIC_VIEW_AGENT;
    claim_devices(ret, FABRIC_LINK_EFA, "EFA");
    claim_devices(ret, FABRIC_LINK_INFINIBAND, "InfiniBand");
    claim_devices(ret, FABRIC_LINK_ETHERNET, "Ethernet (RoCE)");
    if (ret->n_devices > 0 && !ret->has_verbs_files)
        claim(ret, "verbs", "/dev/infiniband",
            "is not there: the devices were not given to this container");
    read_nics(ret, t);
    claim_nics(ret);
    /* "0-207" */
    if (tree_read(t, "/sys/devices/system/cpu/present", cpus, sizeof(cpus)))
        ret->n_cpus =
            (unsigned)strtoul(strrchr(cpus, '-') ? strrchr(cpus, '-') + 1 : cpus, NULL, 10) + 1;
    ret->kind = choose(ret);
    find_files(ret, t);
}

void fabric_read_here(struct fabric_facts *ret, enum fabric_view view, unsigned timeout_ms)
{
    const struct tree here = {.root = ""};
    enum metadata_cloud cloud = metadata_cloud_of(&here);
    struct metadata_answers answers;
    struct err e = ERR_NULL;
    int r = cloud == METADATA_CLOUD_NONE ? -1 : metadata_fetch(&answers, cloud, timeout_ms, &e);

    fabric_read(ret, &here, view, r == 0 ? &answers : NULL);
    if (r != 0 && cloud != METADATA_CLOUD_NONE)
        (void)snprintf(ret->fault, sizeof(ret->fault), "%.*s", FABRIC_PATH_MAX - 1, err_text(&e));
}

/* ---- what others are told ------------------------------------------------------------------- */

static void add_key(struct fabric_report *r, bool is_exact, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add_key(struct fabric_report *r, bool is_exact, const char *fmt, ...)
{
    struct fabric_key *key = &r->keys[r->n_keys];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(key->text, sizeof(key->text), fmt, args);
    va_end(args);
    key->is_exact = is_exact;
    r->n_keys += len > 0 && len < (int)sizeof(key->text);
}

/* The prefix with which a subnet manager begins, and which most leave as it is. */
#define DEFAULT_SUBNET "fe80:0000:0000:0000"

void fabric_report_make(struct fabric_report *ret, const struct fabric_facts *f)
{
    const struct metadata_place *p = &f->place;
    const char *cloud = metadata_cloud_name(f->cloud);

    *ret = (struct fabric_report){.n_gpus = f->n_gpus, .asked_together = p->asked_together};
    (void)snprintf(ret->kind, sizeof(ret->kind), "%s", fabric_kind_names[f->kind]);
    (void)snprintf(
        ret->machine, sizeof(ret->machine), "%.*s", FABRIC_REPORT_TEXT_MAX - 1, p->machine);
    (void)snprintf(ret->gpu, sizeof(ret->gpu), "%.*s", FABRIC_REPORT_TEXT_MAX - 1, f->gpu);
    for (size_t i = 0; i < f->n_devices; i++)
        if (fabric_device_serves(&f->devices[i], f))
            ret->gbit += f->devices[i].gbit;
    if (p->group[0] != '\0')
        add_key(ret, true, "%s-group/%.40s/%.70s", cloud, p->zone, p->group);
    if (p->block[0] != '\0')
        add_key(ret, true, "gce-block/%s", p->block);
    /* Azure partitions its InfiniBand by placement group, with one prefix for all. */
    for (size_t i = 0; f->cloud == METADATA_CLOUD_NONE && i < f->n_devices; i++)
        if (f->kind == FABRIC_INFINIBAND && f->devices[i].is_active && f->devices[i].subnet[0]) {
            add_key(ret, strcmp(f->devices[i].subnet, DEFAULT_SUBNET) != 0, "ib-subnet/%s",
                f->devices[i].subnet);
            break;
        }
    /* EFA reaches everyone of the zone, but only nearby machines quickly. */
    if (f->kind == FABRIC_EFA && p->zone[0] != '\0')
        add_key(ret, false, "aws-zone/%s", p->zone);
}

void fabric_format(struct str *out, const struct fabric_facts *f)
{
    str_addf(out, "fabric: %s\n", fabric_kind_names[f->kind]);
    for (size_t i = 0; i < f->n_claims; i++)
        str_addf(out, "%s: %s (%s)\n", f->claims[i].what, f->claims[i].value, f->claims[i].source);
}

/* ==== what libfabric says ==================================================================== */

#define TIMEOUT_MS 2000
#define OUTPUT_MAX (256u << 10) /* a p5 with 32 devices prints about 20,000 bytes */
#define NAME_BYTES 32

/* The names of domains that were seen. */
struct domains {
    char names[LIBFABRIC_DOMAINS_MAX][NAME_BYTES];
    unsigned n;
};

/* Copies the value of a line "name: value" if it is that name's; letters, digits and ;_-. only. */
static bool take_value(const char *line, size_t len, const char *name, char ret[static NAME_BYTES])
{
    size_t name_len = strlen(name);
    size_t n;

    while (len > 0 && *line == ' ') {
        line++;
        len--;
    }
    if (len <= name_len || strncmp(line, name, name_len) != 0)
        return false;
    line += name_len;
    n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789;_-.");
    if (n == 0 || n > len - name_len || n >= NAME_BYTES)
        return false;
    memcpy(ret, line, n);
    ret[n] = '\0';
    return true;
}

/* Is @name an item of the list between commas? */
static bool has(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static void add_provider(struct libfabric *l, const char *name)
{
    size_t len = strlen(l->providers);

    if (!has(l->providers, name) && len + strlen(name) + 2 <= sizeof(l->providers))
        (void)snprintf(
            l->providers + len, sizeof(l->providers) - len, "%s%s", len > 0 ? "," : "", name);
}

/* A device of EFA has a domain for each type of endpoint, such as "rdmap16s27-rdm". */
static void add_domain(struct domains *d, const char *name)
{
    const char *end = strrchr(name, '-');

    if (!end || strcmp(end, "-rdm") != 0 || d->n == LIBFABRIC_DOMAINS_MAX)
        return;
    for (unsigned i = 0; i < d->n; i++)
        if (strcmp(d->names[i], name) == 0)
            return;
    memcpy(d->names[d->n++], name, strlen(name) + 1);
}

void libfabric_parse(struct libfabric *ret, const char *text)
{
    struct domains domains = {.n = 0};
    char provider[NAME_BYTES] = "";
    char value[NAME_BYTES];

    *ret = (struct libfabric){.n_efa = 0};
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        if (take_value(text, len, "provider: ", provider))
            add_provider(ret, provider);
        else if (strcmp(provider, "efa") == 0 && take_value(text, len, "domain: ", value))
            add_domain(&domains, value);
        text += len + (text[len] == '\n');
    }
    ret->n_efa = domains.n;
}

bool libfabric_ask(struct libfabric *ret)
{
    static const char *const places[] = {"/opt/amazon/efa/bin/fi_info", "/usr/bin/fi_info"};
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const char *argv[] = {NULL, NULL};
    const struct capture_options opt = {
        .argv = argv, .timeout_ms = TIMEOUT_MS, .max = OUTPUT_MAX, .takes_errors = true};
    int status;

    for (size_t i = 0; !argv[0] && i < sizeof(places) / sizeof(*places); i++)
        argv[0] = access(places[i], X_OK) == 0 ? places[i] : NULL;
    if (!argv[0] || capture_run(&opt, &out, &status, NULL) != 0)
        return false;
    libfabric_parse(ret, str_text(&out));
    return true;
}

void libfabric_assess(const struct libfabric *l, const struct fabric_facts *f, struct str *out)
{
    size_t n = fabric_count_serving(f);

    if (f->kind != FABRIC_EFA)
        return;
    if (l->n_efa == 0)
        str_addf(out,
            "this machine has EFA, and fi_info knows no provider efa (%s): without Amazon's EFA "
            "software NCCL uses TCP\n",
            l->providers[0] != '\0' ? l->providers : "none at all");
    else if (l->n_efa < n)
        str_addf(out, "this machine has %zu EFA devices, and libfabric's provider efa sees %u\n", n,
            l->n_efa);
}
