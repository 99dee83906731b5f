/* price_table.c - see price_table.h. */
#include "cmd/price_table.h"

#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "mesh/object/prices.h"
#include "os/statefile.h"

#define TABLE_MAX (1u << 20) /* bytes */

int price_table_read(struct prices *ret, json_t **ret_json, const char *path, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    json_error_t where;
    json_t *json;
    size_t len;
    int r = statefile_read(path, TABLE_MAX, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "%.200s does not exist", path);
    if (r < 0)
        return r;
    json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return err_set(e, -EINVAL, "%.200s is no JSON: line %d: %s", path, where.line, where.text);
    r = prices_decode(ret, json, e);
    if (r == 0 && ret_json)
        *ret_json = json_incref(json);
    json_decref(json);
    return r == 0 ? 0 : err_prefix(e, "%.200s", path);
}
