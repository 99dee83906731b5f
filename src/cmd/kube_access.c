/* kube_access.c - see kube_access.h. */
#include "cmd/kube_access.h"

#include <errno.h>
#include <string.h>

#include "backends/kubernetes/kube_config.h"
#include "base/err.h"
#include "cmd/privileges.h"

int kube_access_parse(const char **ret, const char *text, struct err *e)
{
    static const char scheme[] = "kubernetes:";
    int r;

    if (strncmp(text, scheme, strlen(scheme)) != 0)
        return err_set(e, -EINVAL, "--from \"%.100s\": only \"kubernetes:\" is known", text);
    r = kube_config_check(text + strlen(scheme), e);
    if (r == 0)
        *ret = text + strlen(scheme);
    return r;
}

int kube_access_add(struct privileges *p, struct kube_config *c, const char *where,
    char token_folder[static PATH_MAX], struct err *e)
{
    int r = kube_config_read(c, where, e);

    if (r != 0)
        return r;
    privileges_add(p, c->file, PRIVILEGES_READ);
    /* What the kubeconfig holds inline has no path. */
    privileges_add(p, c->fds[0] < 0 ? c->ca_file : NULL, PRIVILEGES_READ);
    privileges_add(p, c->fds[1] < 0 ? c->cert_file : NULL, PRIVILEGES_READ);
    privileges_add(p, c->fds[2] < 0 ? c->key_file : NULL, PRIVILEGES_READ);
    if (c->token_file)
        privileges_add_folder_of(p, c->token_file, token_folder, PRIVILEGES_READ);
    return 0;
}
