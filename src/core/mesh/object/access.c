/* access.c - see access.h. */
#include "mesh/object/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"
#include "mesh/object/rule.h"

#define WHERE "report: access"

json_t *access_report_encode(const struct access_report *r)
{
    json_t *rules = json_object();
    json_t *refused = json_array();

    for (unsigned i = 0; i < r->n_rules; i++)
        fields_set(&rules, r->rules[i].rule,
            json_pack("[I, I]", (json_int_t)r->rules[i].passed, (json_int_t)r->rules[i].refused));
    for (unsigned i = 0; i < r->n_refused; i++)
        fields_append(&refused,
            json_pack("{s:s, s:s, s:s, s:I}", "from", r->refused[i].from, "to", r->refused[i].to,
                "service", r->refused[i].service, "packets", (json_int_t)r->refused[i].packets));
    return json_pack("{s:o, s:o}", "rules", rules, "refused", refused);
}

static int decode_number(uint64_t *ret, const json_t *json, const char *rule, struct err *e)
{
    json_int_t n = json_integer_value(json);

    if (!json_is_integer(json) || n < 0 || (uint64_t)n > ACCESS_COUNT_MAX)
        return err_set(e, -EINVAL,
            WHERE ": a number of the rule \"%.63s\" is not a whole number from 0 to %llu", rule,
            (unsigned long long)ACCESS_COUNT_MAX);
    *ret = (uint64_t)n;
    return 0;
}

static int decode_rule(
    struct access_count *ret, const char *name, const json_t *numbers, struct err *e)
{
    int r = name[0] != '\0' ? parse_name(name, "rule name", e) : 0;

    if (r == 0 && json_array_size(numbers) != 2)
        r = err_set(e, -EINVAL, WHERE ": the rule \"%.63s\" has not two numbers", name);
    if (r == 0)
        r = decode_number(&ret->passed, json_array_get(numbers, 0), name, e);
    if (r == 0)
        r = decode_number(&ret->refused, json_array_get(numbers, 1), name, e);
    if (r == 0)
        (void)snprintf(ret->rule, sizeof(ret->rule), "%s", name);
    return r;
}

/* A node's name, or an address. */
static void read_end(struct fields *f, const char *name, char ret[static ACCESS_END_MAX])
{
    struct ip_addr address;
    struct err e = ERR_NULL;

    fields_text(f, name, FIELDS_REQUIRED, 1, ACCESS_END_MAX, ret);
    if (fields_end(f) == 0 && ip_addr_parse(&address, ret, NULL) != 0 &&
        node_check_name(ret, &e) != 0)
        fields_fail(f, "\"%s\": %s", name, err_text(&e));
}

static int decode_refusal(struct access_refusal *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, WHERE ": refused", e);
    struct access_refusal x = {.packets = 0};
    struct rule_service service;

    read_end(&f, "from", x.from);
    read_end(&f, "to", x.to);
    fields_text(&f, "service", FIELDS_REQUIRED, 1, sizeof(x.service), x.service);
    if (fields_end(&f) == 0 && rule_service_parse(&service, x.service, NULL) != 0)
        fields_fail(&f, "\"service\" is none of any, icmp, tcp/PORT, udp/PORT");
    fields_u64(&f, "packets", FIELDS_REQUIRED, 1, ACCESS_COUNT_MAX, &x.packets);
    if (fields_end(&f) != 0)
        return -EINVAL;
    *ret = x;
    return 0;
}

int access_report_decode(struct access_report *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, WHERE, e);
    const json_t *rules = fields_object(&f, "rules", FIELDS_REQUIRED);
    const json_t *refused = fields_array(&f, "refused", FIELDS_REQUIRED, 0, ACCESS_REFUSED_MAX);
    struct access_report x = {.n_rules = 0};
    const char *name;
    json_t *numbers;
    int r = fields_end(&f);

    if (r == 0 && json_object_size(rules) > ACCESS_RULES_MAX)
        r = err_set(e, -EINVAL, WHERE ": more than %d rules", ACCESS_RULES_MAX);
    if (r != 0)
        return r;
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)rules, name, numbers) {
        r = decode_rule(&x.rules[x.n_rules], name, numbers, e);
        if (r != 0)
            return r;
        x.n_rules++;
    }
    for (size_t i = 0; i < json_array_size(refused); i++) {
        r = decode_refusal(&x.refused[i], json_array_get(refused, i), e);
        if (r != 0)
            return r;
        x.n_refused++;
    }
    *ret = x;
    return 0;
}
