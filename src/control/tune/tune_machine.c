/* tune_machine.c - see tune_machine.h. */
#include "tune/tune_machine.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "os/file.h"
#include "os/nic.h"
#include "os/sysctl.h"

#define SAVED_MAX   (64u << 10)
#define MODULES_MAX (8u << 20)

/* ---- reading --------------------------------------------------------------------------------- */

/* Is a module of that name built in, or installed for this kernel? */
static bool has_module(const char *name)
{
    static const char *const lists[] = {"modules.builtin", "modules.dep"};
    struct utsname kernel;
    char file[64];

    (void)snprintf(file, sizeof(file), "/%s.ko", name);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) && uname(&kernel) == 0; i++) {
        _cleanup_(freep) char *text = NULL;
        char path[PATH_MAX];

        (void)snprintf(path, sizeof(path), "/lib/modules/%s/%s", kernel.release, lists[i]);
        if (statefile_read(path, MODULES_MAX, &text, NULL, NULL) == 0 && strstr(text, file))
            return true;
    }
    return false;
}

/* @max: of a ring. Where the device has none, or it cannot be set, @now stays "". */
static void read_knob(
    const char *device, enum tune_knob k, char now[static TUNE_VALUE_MAX], uint32_t *max)
{
    struct nic_rings rings;
    bool is_on;

    if (k == TUNE_GRO_FORWARDING) {
        if (nic_get_feature(device, tune_knob_names[k], &is_on) == 0)
            (void)snprintf(now, TUNE_VALUE_MAX, "%s", is_on ? "on" : "off");
    } else if (nic_get_rings(device, &rings) == 0) {
        *max = k == TUNE_RING_RX ? rings.rx_max : rings.tx_max;
        if (*max > 0)
            (void)snprintf(now, TUNE_VALUE_MAX, "%u", k == TUNE_RING_RX ? rings.rx : rings.tx);
    }
}

static int write_knob(const char *device, enum tune_knob k, const char *value, struct err *e)
{
    struct nic_rings rings = {.rx = 0};
    int r;

    if (k == TUNE_GRO_FORWARDING) {
        r = nic_set_feature(device, tune_knob_names[k], strcmp(value, "on") == 0);
    } else {
        r = nic_get_rings(device, &rings);
        if (k == TUNE_RING_RX)
            rings.rx = (uint32_t)strtoul(value, NULL, 10);
        else
            rings.tx = (uint32_t)strtoul(value, NULL, 10);
        if (r == 0)
            r = nic_set_rings(device, &rings);
    }
    return r < 0 ? err_set(e, r, "%s of %s cannot be set to %s: %s", tune_knob_names[k], device,
                       value, strerror(-r))
                 : 0;
}

/* Is that a network card of this machine, and not a bridge, a tunnel or the end of a cable? */
static bool is_card(const struct ifaddrs *each)
{
    const struct sockaddr_ll *link = (const struct sockaddr_ll *)(const void *)each->ifa_addr;
    char path[64];

    if (!link || link->sll_family != AF_PACKET || link->sll_hatype != ARPHRD_ETHER ||
        !(each->ifa_flags & IFF_UP))
        return false;
    (void)snprintf(path, sizeof(path), "/sys/class/net/%.15s/device", each->ifa_name);
    return access(path, F_OK) == 0;
}

static void gather_devices(struct tune_facts *f)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *each = all; each && f->n_devices < TUNE_DEVICES_MAX;
         each = each->ifa_next)
        if (is_card(each))
            tune_gather_device(f, each->ifa_name);
    freeifaddrs(all);
}

void tune_gather_device(struct tune_facts *f, const char *name)
{
    struct tune_device *d;

    if (f->n_devices == TUNE_DEVICES_MAX)
        return;
    d = &f->devices[f->n_devices];
    *d = (struct tune_device){.name = ""};
    (void)snprintf(d->name, sizeof(d->name), "%s", name);
    for (unsigned k = 0; k < TUNE_KNOB_N; k++)
        read_knob(name, (enum tune_knob)k, d->now[k], &d->max[k]);
    d->has_gro = nic_has_gro(name);
    f->n_devices++;
}

void tune_gather(struct tune_facts *f)
{
    char available[256] = "";

    for (unsigned s = 0; s < TUNE_SETTING_N; s++) {
        if (sysctl_read(tune_names[s], f->now[s], sizeof(f->now[s])) < 0)
            f->now[s][0] = '\0';
        /* Who is not root may not write any, and is told what root would do. */
        f->is_fixed[s] = geteuid() == 0 && sysctl_check(tune_names[s]) == -EACCES;
    }
    (void)sysctl_read("net.ipv4.tcp_available_congestion_control", available, sizeof(available));
    f->has_bbr = strstr(available, "bbr") || has_module("tcp_bbr");
    f->has_fq = strcmp(f->now[TUNE_QDISC], "fq") == 0 || has_module("sch_fq");
    gather_devices(f);
}

/* ---- what was there before ------------------------------------------------------------------- */

static void path_of(const char *state_dir, char path[static PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%.*s/" TUNE_SAVED, PATH_MAX - 64, state_dir);
}

/* 0; STATEFILE_E_ABSENT; or negative errno with words. */
static int read_saved(struct tune_saved *ret, const char *path, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    json_auto_t *json = NULL;
    int r = statefile_read(path, SAVED_MAX, &text, NULL, e);

    if (r != 0)
        return r;
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    r = json ? tune_saved_decode(ret, json, e) : err_set(e, -EINVAL, "it is no JSON");
    return r < 0 ? (err_prefix(e, "%s", path), r) : 0;
}

static int write_saved(
    const struct tune_saved *s, const char *state_dir, const char *path, struct err *e)
{
    json_auto_t *json = tune_saved_encode(s);
    _cleanup_(freep) char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    int r = text ? statefile_make_dir(state_dir, 0700, e) : err_set(e, -ENOMEM, "no memory");

    return r < 0 ? r : statefile_replace(path, text, strlen(text), 0644, e);
}

static int write_boot_file(
    const struct tune_saved *s, const struct tune_plan *p, const char *boot_file, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    char dir[PATH_MAX];
    char *slash;
    int r;

    (void)snprintf(dir, sizeof(dir), "%s", boot_file);
    slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
    tune_boot_format(s, p, &out);
    if (out.failed)
        return err_set(e, -ENOMEM, "no memory");
    r = slash ? statefile_make_dir(dir, 0755, e) : 0;
    return r < 0 ? r : statefile_replace(boot_file, str_text(&out), out.len, 0644, e);
}

/* ---- changing -------------------------------------------------------------------------------- */

static int check_root(struct err *e)
{
    return geteuid() == 0 ? 0 : err_set(e, -EPERM, "only root may change the kernel's settings");
}

/* Can all of them be written here? */
static int check_writable(const struct tune_plan *p, struct err *e)
{
    for (unsigned s = 0; s < TUNE_SETTING_N; s++) {
        int r = p->items[s].changes ? sysctl_check(tune_names[s]) : 0;

        if (r == -EROFS)
            return err_set(e, r,
                "%s cannot be set: /proc/sys is mounted read-only here, as in a container; run it "
                "on the machine itself",
                tune_names[s]);
        if (r < 0)
            return err_set(e, r, "%s cannot be set: %s", tune_names[s], strerror(-r));
    }
    return 0;
}

/* Sets one of a plan's items to what is wanted, or, with @back, to what it was; by its number: the
 * kernel's settings, then those of each device. */
static int set_item(
    const struct tune_plan *p, const struct tune_facts *f, size_t n, bool back, struct err *e)
{
    size_t d = n < TUNE_SETTING_N ? 0 : (n - TUNE_SETTING_N) / TUNE_KNOB_N;
    size_t k = n < TUNE_SETTING_N ? 0 : (n - TUNE_SETTING_N) % TUNE_KNOB_N;
    const struct tune_item *i = n < TUNE_SETTING_N ? &p->items[n] : &p->devices[d][k];

    if (!i->changes)
        return 0;
    if (n < TUNE_SETTING_N)
        return sysctl_write(tune_names[n], back ? f->now[n] : i->wanted, e);
    return write_knob(
        f->devices[d].name, (enum tune_knob)k, back ? f->devices[d].now[k] : i->wanted, e);
}

/* Sets the first @n items, of those that change, to what they were. */
static void set_back(const struct tune_plan *p, const struct tune_facts *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)set_item(p, f, i, true, NULL);
}

/* Sets all that changes; if that fails, those of before are set back. */
static int set_all(const struct tune_plan *p, const struct tune_facts *f, struct err *e)
{
    for (size_t i = 0; i < TUNE_SETTING_N + f->n_devices * TUNE_KNOB_N; i++) {
        int r = set_item(p, f, i, false, e);

        if (r < 0) {
            set_back(p, f, i);
            return r;
        }
    }
    return 0;
}

int tune_apply(const struct tune_plan *p, const struct tune_facts *f, const char *state_dir,
    const char *boot_file, struct err *e)
{
    struct tune_saved saved = {.has = {false}};
    char path[PATH_MAX];
    bool is_first;
    int r = check_root(e);

    if (r == 0)
        r = check_writable(p, e);
    if (r < 0 || p->n_changes == 0)
        return r;
    path_of(state_dir, path);
    r = read_saved(&saved, path, e);
    is_first = r == STATEFILE_E_ABSENT;
    if (is_first && access(boot_file, F_OK) == 0)
        return err_set(
            e, -EEXIST, "%s is there, and was not written by weft tune: move it away", boot_file);
    if (r < 0)
        return r;
    if (!tune_saved_add(&saved, p, f))
        return err_set(e, -ENOSPC,
            "%u other devices were changed before: weft tune --undo sets them back first",
            TUNE_DEVICES_MAX);
    r = write_saved(&saved, state_dir, path, e);
    if (r == 0)
        r = set_all(p, f, e);
    if (r == 0) {
        r = write_boot_file(&saved, p, boot_file, e);
        if (r < 0)
            set_back(p, f, TUNE_SETTING_N + f->n_devices * TUNE_KNOB_N);
    }
    if (r < 0 && is_first)
        (void)unlink(path);
    return r;
}

/* Is it not what it was set to? */
static bool is_reset(enum tune_knob k, const char *now, const char *wanted)
{
    if (k == TUNE_GRO_FORWARDING)
        return strcmp(now, wanted) != 0;
    return strtoul(now, NULL, 10) < strtoul(wanted, NULL, 10);
}

int tune_set_again(const char *state_dir, struct err *e)
{
    struct tune_saved saved;
    char path[PATH_MAX];
    int r;

    path_of(state_dir, path);
    r = read_saved(&saved, path, e);
    if (r != 0)
        return r == STATEFILE_E_ABSENT ? 0 : r;
    for (size_t n = 0; n < saved.n_devices * TUNE_KNOB_N; n++) {
        const char *device = saved.devices[n / TUNE_KNOB_N].name;
        enum tune_knob k = (enum tune_knob)(n % TUNE_KNOB_N);
        const char *wanted = saved.wanted[n / TUNE_KNOB_N][k];
        char now[TUNE_VALUE_MAX] = "";
        uint32_t max;
        int failed;

        read_knob(device, k, now, &max);
        if (wanted[0] == '\0' || now[0] == '\0' || !is_reset(k, now, wanted))
            continue;
        failed = write_knob(device, k, wanted, e);
        if (failed < 0)
            r = failed;
    }
    return r;
}

/* A device that is gone has nothing to be set back. */
static int undo_device(const struct tune_device *d, struct err *e)
{
    int r = 0;

    for (unsigned k = 0; r == 0 && k < TUNE_KNOB_N && if_nametoindex(d->name) != 0; k++)
        if (d->now[k][0] != '\0')
            r = write_knob(d->name, (enum tune_knob)k, d->now[k], e);
    return r;
}

int tune_undo(struct tune_saved *ret, const char *state_dir, const char *boot_file, struct err *e)
{
    struct tune_saved saved;
    char path[PATH_MAX];
    int r;

    path_of(state_dir, path);
    r = check_root(e);
    if (r == 0)
        r = read_saved(&saved, path, e);
    if (r == STATEFILE_E_ABSENT)
        return err_set(
            e, TUNE_E_NOTHING, "weft tune has changed nothing here: there is no %s", path);
    for (unsigned s = 0; r == 0 && s < TUNE_SETTING_N; s++)
        if (saved.has[s])
            r = sysctl_write(tune_names[s], saved.before[s], e);
    for (size_t d = 0; r == 0 && d < saved.n_devices; d++)
        r = undo_device(&saved.devices[d], e);
    if (r < 0)
        return r;
    if ((unlink(boot_file) < 0 && errno != ENOENT) || unlink(path) < 0)
        return err_set(e, -errno, "%s cannot be removed: %s", boot_file, strerror(errno));
    *ret = saved;
    return 0;
}
