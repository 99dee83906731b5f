/* access_sample.c - see access_sample.h. */
#include "test/bench/access_sample.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/object/rule.h"
#include "test/support/sample_mesh.h"

void access_sample_put(struct snapshot *s, unsigned i, unsigned n_nodes, unsigned port)
{
    char name[16];
    char from[32];
    char allow[32];
    struct object o = OBJECT_NULL;
    struct err e = ERR_NULL;
    json_t *json;

    (void)snprintf(name, sizeof(name), "r%u", i);
    (void)snprintf(from, sizeof(from), "node:n%u", 2 + i % (n_nodes - 1));
    (void)snprintf(allow, sizeof(allow), "udp/%u", port);
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s]}}", "kind", "Rule", "metadata",
        "name", name, "network", "default", "spec", "from", from, "to", "members", "allow", allow);
    if (object_decode(&o, json, OBJECT_STRICT, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(json);
    sample_put(s, o);
}
