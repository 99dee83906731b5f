/* sample_top.c - see sample_top.h. */
#include "test/support/sample_top.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "top/top_rates.h"

void sample_top_make(struct top_model *ret, const json_t *json)
{
    const json_t *status = json_object_get(json, "status");
    const char *network = json_string_value(json_object_get(json, "network"));
    struct top_rates rates = {.is_stepped = !status};
    nsec_t now = NSEC_PER_SEC;
    const json_t *rows;
    size_t i;

    json_array_foreach(json_object_get(json, "traffic"), i, rows) {
        top_rates_take(&rates, rows, now);
        now += (status ? 3 : 60) * NSEC_PER_SEC;
    }
    top_model_make(ret, &(struct top_answers){.network = network ? network : "",
                            .nodes = json_object_get(json, "nodes"),
                            .edges = json_object_get(json, "edges"),
                            .jobs = json_object_get(json, "jobs"),
                            .findings = json_object_get(json, "findings"),
                            .status = status,
                            .rates = &rates});
    top_rates_deinit(&rates);
}

void sample_top_read(struct top_model *ret, const char *name)
{
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char path[512];
    json_error_t why;
    json_t *json;

    (void)snprintf(path, sizeof(path), "%s/test/corpus/top/%s", root ? root : ".", name);
    json = json_load_file(path, 0, &why);
    if (!json) {
        (void)fprintf(stderr, "%s: %s\n", path, why.text);
        exit(1);
    }
    sample_top_make(ret, json);
    json_decref(json);
}
