/* labels.c - see labels.h. */
#include "labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/options.h"
#include "mesh/object/object.h"

int labels_parse(struct label **ret, const struct option_list *given, struct err *e)
{
    _cleanup_(freep) struct label *labels = NULL;
    int r;

    if (given->n > OBJECT_LABELS_MAX)
        return err_set(
            e, -EINVAL, "%zu labels are given, and %d are allowed", given->n, OBJECT_LABELS_MAX);
    labels = calloc(given->n + 1, sizeof(*labels));
    if (!labels)
        return err_set(e, -ENOMEM, "no memory for the labels");
    for (size_t i = 0; i < given->n; i++) {
        const char *text = given->items[i];
        const char *equals = strchr(text, '=');
        size_t len = equals ? (size_t)(equals - text) : 0;

        if (len == 0 || len > OBJECT_LABEL_MAX || strlen(equals + 1) > OBJECT_LABEL_MAX)
            return err_set(e, -EINVAL,
                "label \"%.70s\" is not KEY=VALUE with at most %d bytes each", text,
                OBJECT_LABEL_MAX);
        (void)snprintf(labels[i].key, sizeof(labels[i].key), "%.*s", (int)len, text);
        (void)snprintf(labels[i].value, sizeof(labels[i].value), "%s", equals + 1);
        r = label_check(labels[i].key, labels[i].value, e);
        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(labels);
    return 0;
}
