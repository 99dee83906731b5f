/* canned_kube.c - see canned_kube.h. */
#include "test/support/canned_kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "backends/kubernetes/kube_client.h"
#include "backends/remote/remote_http.h"
#include "base/err.h"

void canned_kube_start(
    struct canned_server *s, struct kube_client *c, const char *const *answers, size_t n_answers)
{
    struct remote_http_config config = {.n_servers = 1, .connect_ms = 2000};
    struct err e = ERR_NULL;

    canned_server_start(s, answers, n_answers);
    config.servers[0] = s->url;
    *c = (struct kube_client)KUBE_CLIENT_NULL;
    (void)snprintf(c->config.namespace, sizeof(c->config.namespace), "weft");
    assert_int_equal(remote_http_new(&c->http, &config, &e), 0);
}
