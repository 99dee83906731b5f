/* libfabric.c - see libfabric.h. */
#include "fabric/libfabric.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fabric/fabric.h"
#include "os/capture.h"

#define TIMEOUT_MS 2000
#define OUTPUT_MAX (256u << 10) /* a p5 with 32 devices prints about 20,000 bytes */
#define NAME_BYTES 32

/* The names of domains that were seen. */
struct domains {
    char names[LIBFABRIC_DOMAINS_MAX][NAME_BYTES];
    unsigned n;
};

/* Copies the value of a line "name: value" if it is that name's; letters, digits and ;_-. only. */
static bool take(const char *line, size_t len, const char *name, char ret[static NAME_BYTES])
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

        if (take(text, len, "provider: ", provider))
            add_provider(ret, provider);
        else if (strcmp(provider, "efa") == 0 && take(text, len, "domain: ", value))
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
    const struct capture_wish wish = {
        .argv = argv, .timeout_ms = TIMEOUT_MS, .max = OUTPUT_MAX, .takes_errors = true};
    int status;

    for (size_t i = 0; !argv[0] && i < sizeof(places) / sizeof(*places); i++)
        argv[0] = access(places[i], X_OK) == 0 ? places[i] : NULL;
    if (!argv[0] || capture_run(&wish, &out, &status, NULL) != 0)
        return false;
    libfabric_parse(ret, str_text(&out));
    return true;
}

void libfabric_judge(const struct libfabric *l, const struct fabric_facts *f, struct str *out)
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
