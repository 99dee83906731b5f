/* table.c - see table.h. */
#include "measure/table.h"

#include <assert.h>
#include <string.h>

#include "base/addr.h"
#include "base/text.h"
#include "mesh/object/fields.h"

#define HEX_MAX 32 /* bytes of the longest member that is written in hex */

static bool is_of_kind(const struct row *row, unsigned kind)
{
    return row->kinds == 0 || (row->kinds & kind) != 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static json_t *encode_member(const struct row *row, const void *member)
{
    char text[IP_ADDR_TEXT_MAX > 2 * HEX_MAX ? IP_ADDR_TEXT_MAX : 2 * HEX_MAX + 1];
    uint64_t pair[2] = {0};
    struct ip_addr address;
    unsigned word = 0;
    bool flag = false;

    switch (row->type) {
    case ROW_U32:
    case ROW_ENUM:
        memcpy(&word, member, sizeof(word));
        return row->type == ROW_ENUM ? json_string(row->names[word]) : json_integer(word);
    case ROW_U64:
    case ROW_I64:
        memcpy(pair, member, sizeof(*pair));
        return json_integer((json_int_t)pair[0]);
    case ROW_PAIR:
        memcpy(pair, member, sizeof(pair));
        return json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
    case ROW_BOOL:
        memcpy(&flag, member, sizeof(flag));
        return json_boolean(flag);
    case ROW_TEXT:
    case ROW_NAME:
        return json_string(member);
    case ROW_IPV4:
    case ROW_ADDRESS:
        memcpy(&address, member, sizeof(address));
        return json_string(ip_addr_format(&address, text));
    case ROW_HEX:
        assert(row->size <= HEX_MAX);
        hex_encode(member, row->size, text);
        return json_string(text);
    case ROW_OBJECT:
        return table_encode(json_object(), row->rows, 0, member);
    case ROW_END:
        break;
    }
    return NULL;
}

json_t *table_encode(json_t *json, const struct row *rows, unsigned kind, const void *from)
{
    const char *base = from;

    for (const struct row *row = rows; json && row->type != ROW_END; row++) {
        if (!is_of_kind(row, kind) || (row->has != 0 && !*(const bool *)(base + row->has)))
            continue;
        fields_set(&json, row->name, encode_member(row, base + row->offset));
    }
    return json;
}

json_t *table_encode_list(const struct row *rows, const void *from, size_t n, size_t size)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        fields_append(&list, table_encode(json_object(), rows, 0, (const char *)from + i * size));
    return list;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void decode_hex(struct fields *f, const struct row *row, enum fields_need need, char *base)
{
    size_t len = 2 * row->size;
    const char *text = fields_string(f, row->name, need, len, len);

    if (!text)
        return;
    if (row->has != 0)
        *(bool *)(base + row->has) = true;
    if (!hex_decode(text, (uint8_t *)base + row->offset, row->size))
        fields_fail(f, "\"%s\" is not %zu hex digits", row->name, len);
}

static void decode_pair(struct fields *f, const char *name, uint64_t ret[static 2])
{
    const json_t *list = fields_array(f, name, FIELDS_REQUIRED, 2, 2);
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        if (!json_is_integer(item) || json_integer_value(item) < 0) {
            fields_fail(f, "\"%s\" is not two numbers", name);
            return;
        }
        ret[i] = (uint64_t)json_integer_value(item);
    }
}

static void decode_i64(struct fields *f, const char *name, enum fields_need need, int64_t *ret)
{
    const json_t *json = fields_get(f, name, need);

    if (json && !json_is_integer(json))
        fields_fail(f, "\"%s\" is no integer", name);
    else if (json)
        *ret = json_integer_value(json);
}

static void decode_object(
    struct fields *f, const char *where, const json_t *json, const struct row *rows, void *ret)
{
    struct fields g = fields_make(json, where, f->e);

    table_decode(&g, rows, 0, ret);
    if (fields_end(&g) != 0)
        f->failed = fields_end(&g);
}

static void decode_member(struct fields *f, const struct row *row, char *base)
{
    enum fields_need need = row->is_optional ? FIELDS_OPTIONAL : FIELDS_REQUIRED;
    void *member = base + row->offset;
    const json_t *json;
    uint64_t number = 0;
    const char *text;

    switch (row->type) {
    case ROW_U32:
        number = *(const uint32_t *)member;
        fields_u64(f, row->name, need, row->min, row->max, &number);
        *(uint32_t *)member = (uint32_t)number;
        break;
    case ROW_U64:
        fields_u64(f, row->name, need, row->min, row->max, member);
        break;
    case ROW_I64:
        decode_i64(f, row->name, need, member);
        break;
    case ROW_BOOL:
        fields_bool(f, row->name, need, member);
        break;
    case ROW_TEXT:
        fields_text(f, row->name, need, row->min, row->size, member);
        break;
    case ROW_ENUM:
        fields_enum(f, row->name, need, row->names, (unsigned)row->max, member);
        break;
    case ROW_IPV4:
        fields_address(f, row->name, need, true, member);
        break;
    case ROW_ADDRESS:
        text = fields_string(f, row->name, need, 1, IP_ADDR_TEXT_MAX - 1);
        if (text && ip_addr_parse(member, text, NULL) != 0)
            fields_fail(f, "\"%s\" is \"%s\", which is no address", row->name, text);
        break;
    case ROW_NAME:
        fields_name(f, row->name, need, member);
        break;
    case ROW_HEX:
        decode_hex(f, row, need, base);
        break;
    case ROW_PAIR:
        decode_pair(f, row->name, member);
        break;
    case ROW_OBJECT:
        json = fields_object(f, row->name, need);
        if (json)
            decode_object(f, row->name, json, row->rows, member);
        break;
    case ROW_END:
        break;
    }
}

void table_decode(struct fields *f, const struct row *rows, unsigned kind, void *ret)
{
    for (const struct row *row = rows; row->type != ROW_END; row++)
        if (is_of_kind(row, kind))
            decode_member(f, row, ret);
}

void table_decode_list(struct fields *f, const json_t *list, const char *where,
    const struct row *rows, void *ret, size_t size)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (fields_end(f) == 0)
            decode_object(f, where, item, rows, (char *)ret + i * size);
}
