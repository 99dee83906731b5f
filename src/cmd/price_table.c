/* price_table.c - see price_table.h. */
#include "cmd/price_table.h"

#include "base/err.h"
#include "cmd/json_file.h"
#include "mesh/object/prices.h"

#define TABLE_MAX (1u << 20) /* bytes */

int price_table_read(struct prices *ret, json_t **ret_json, const char *path, struct err *e)
{
    json_t *json;
    int r = json_file_read(&json, path, TABLE_MAX, e);

    if (r < 0)
        return r;
    r = prices_decode(ret, json, e);
    if (r == 0 && ret_json)
        *ret_json = json_incref(json);
    json_decref(json);
    return r == 0 ? 0 : err_prefix(e, "%.200s", path);
}
