/* store_open.c - see store_open.h. */
#include "store_open.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "store/store_backend.h"

struct kind {
    const char *scheme; /* what the URL starts with */
    store_open_fn *open;
    bool has_path;         /* something must follow the scheme; else nothing may */
    store_check_fn *check; /* NULL: no more than that */
};

static const struct kind kinds[] = {
    {"sqlite:", sqlite_open, true, NULL},
    {"memory:", memory_open, false, NULL},
    {"etcd:", etcd_open, true, etcd_check},
    {"etcds:", etcd_open_tls, true, etcd_check_tls},
    {"kubernetes:", kubernetes_open, true, kube_config_check},
};

static int find_kind(const char *url, const struct kind **ret, struct err *e)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t len = strlen(kinds[i].scheme);

        if (strncmp(url, kinds[i].scheme, len) != 0 ||
            (!kinds[i].check && kinds[i].has_path != (url[len] != '\0')))
            continue;
        *ret = &kinds[i];
        return 0;
    }
    return err_set(e, -EINVAL,
        "store \"%.200s\" is none of \"sqlite:PATH\", \"memory:\", \"etcd://HOST,...\", "
        "\"etcds://HOST,...\" and \"kubernetes:\"",
        url);
}

int store_open_check(const char *url, struct err *e)
{
    const struct kind *kind;
    int r = find_kind(url, &kind, e);

    return r == 0 && kind->check ? kind->check(url + strlen(kind->scheme), e) : r;
}

int store_open(struct store **ret, const char *url, nsec_t now, struct err *e)
{
    const struct kind *kind;
    int r = find_kind(url, &kind, e);

    return r == 0 ? kind->open(ret, url + strlen(kind->scheme), now, e) : r;
}
