/*
 * test-kubernetes-linear.c - several hubs at one Kubernetes API server that dies and stands still,
 * and so does the etcd behind it: is each history of requests linearizable, and is no write lost
 * that was acknowledged?
 *
 * test/kube/test_store.py starts the servers, disturbs them, and sets $WEFT_TEST_KUBECONFIG, of the
 * namespace "linear". One hub asks the API server itself, by TLS. If $WEFT_TEST_KUBE_PROXY is set,
 * which is HOST:PORT of a "kubectl proxy", the others ask that one without TLS, each through a
 * proxy that loses requests and answers besides. Without a server nothing is tested, and the test
 * says so.
 *
 * WEFT_RUNS says how many runs (25), WEFT_SEED the first seed (1); a failure prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "test/support/linear_hubs.h"

struct scene {
    struct linear_way *proxies[LINEAR_HUBS]; /* owns; NULL: that hub asks the server itself */
    char kubeconfigs[LINEAR_HUBS][64];       /* files of those that do not */
};

static void write_kubeconfig(const char *path, const char *server)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fprintf(f,
                    "current-context: c\n"
                    "contexts: [{name: c, context: {cluster: c}}]\n"
                    "clusters: [{name: c, cluster: {server: \"http://%s\"}}]\n",
                    server) > 0);
    assert_int_equal(fclose(f), 0);
}

static void open_proxies(struct scene *scene, const char *server, uint64_t seed)
{
    for (unsigned i = 1; server && i < LINEAR_HUBS; i++) {
        scene->proxies[i] = linear_way_open(server, seed * LINEAR_HUBS + i, NULL);
        (void)snprintf(scene->kubeconfigs[i], sizeof(scene->kubeconfigs[i]),
            "/tmp/weft-test-linear.%d.%u", (int)getpid(), i);
        write_kubeconfig(scene->kubeconfigs[i], linear_way_server(scene->proxies[i]));
    }
}

static void close_proxies(struct scene *scene, unsigned *n_requests, unsigned *n_answers)
{
    for (unsigned i = 0; i < LINEAR_HUBS; i++) {
        if (scene->proxies[i])
            (void)unlink(scene->kubeconfigs[i]);
        scene->proxies[i] = linear_way_close(scene->proxies[i], n_requests, n_answers);
    }
}

static struct store *open_hub(void *ctx, unsigned id)
{
    const struct scene *scene = ctx;
    struct store *s = NULL;
    struct err e = ERR_NULL;
    char url[512];

    (void)snprintf(url, sizeof(url), "kubernetes:?namespace=linear&kubeconfig=%s",
        scene->proxies[id] ? scene->kubeconfigs[id] : getenv("WEFT_TEST_KUBECONFIG"));
    return store_open(&s, url, 0, &e) == 0 ? s : NULL;
}

static void test_runs(void **state)
{
    struct scene scene = {.proxies = {NULL}};
    const struct linear_hubs_rules rules = {.ctx = &scene, .open = open_hub, .reopen_every = 10};
    struct linear_hubs_figures figures;
    unsigned n_requests = 0;
    unsigned n_answers = 0;

    open_proxies(&scene, getenv("WEFT_TEST_KUBE_PROXY"), linear_hubs_seed());
    figures = linear_hubs_run(&rules, 25, linear_hubs_seed(), NULL);
    close_proxies(&scene, &n_requests, &n_answers);
    print_message(
        "FIGURE %lu runs, %d hubs, %u in turn: %u requests to the API server and %u answers "
        "were lost; the hubs were answered %u times, of which %u are of unknown outcome, "
        "and %u requests failed\n",
        figures.n_runs, LINEAR_HUBS, figures.n_begun, n_requests, n_answers, figures.n_answered,
        figures.n_unknown, figures.n_failed);
    assert_true(figures.n_runs > 0 && figures.n_answered > figures.n_unknown);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
    };

    if (!getenv("WEFT_TEST_KUBECONFIG")) {
        (void)printf("skipped: there is no API server; test/kube/test_store.py starts one\n");
        return 0;
    }
    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
