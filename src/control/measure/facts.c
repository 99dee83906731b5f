/* facts.c - see facts.h: the struct and its JSON. */
#include "measure/facts.h"

#include "mesh/object/fields.h"

static json_t *encode_versions(const struct facts_versions *v)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "weft", v->weft, "kernel", v->kernel, "python",
        v->python, "torch", v->torch, "nccl", v->nccl);
}

static json_t *encode_interfaces(const struct facts *f)
{
    json_t *list = json_array();
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; list && i < f->n_interfaces; i++) {
        const struct facts_interface *itf = &f->interfaces[i];

        if (json_array_append_new(
                list, json_pack("{s:s, s:s, s:b}", "name", itf->name, "address",
                          ip_addr_format(&itf->address, text), "running", (int)itf->running)) < 0)
            list = (json_decref(list), NULL);
    }
    return list;
}

json_t *facts_encode(const struct facts *f)
{
    char address[IP_ADDR_TEXT_MAX];
    char host[IP_ADDR_TEXT_MAX];

    return json_pack(
        "{s:o, s:[I,I], s:I, s:b, s:[I,I], s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o}",
        "versions", encode_versions(&f->versions), "nofile", (json_int_t)f->nofile_soft,
        (json_int_t)f->nofile_hard, "memlock", (json_int_t)f->memlock_hard, "rdma",
        (int)f->has_rdma, "tcpBuffers", (json_int_t)f->tcp_receive_max, (json_int_t)f->tcp_send_max,
        "tcpRestarts", (int)f->tcp_restarts, "interface", f->interface, "address",
        ip_addr_format(&f->address, address), "hostAddress", ip_addr_format(&f->host_address, host),
        "hostname", f->hostname, "ncclIfname", f->nccl_ifname, "ncclFamily", f->nccl_family,
        "traffic", (json_int_t)f->traffic, "jobs", (json_int_t)f->jobs, "interfaces",
        encode_interfaces(f));
}

/* ---- decoding ------------------------------------------------------------------------------ */

static void get_any_address(struct fields *f, const char *name, struct ip_addr *ret)
{
    const char *text = fields_string(f, name, FIELDS_REQUIRED, 1, IP_ADDR_TEXT_MAX - 1);

    if (text && ip_addr_parse(ret, text, NULL) != 0)
        fields_fail(f, "\"%s\" is \"%s\", which is no address", name, text);
}

static void get_pair(struct fields *f, const char *name, uint64_t *a, uint64_t *b)
{
    const json_t *list = fields_array(f, name, FIELDS_REQUIRED, 2, 2);

    if (!list)
        return;
    if (!json_is_integer(json_array_get(list, 0)) || !json_is_integer(json_array_get(list, 1)) ||
        json_integer_value(json_array_get(list, 0)) < 0 ||
        json_integer_value(json_array_get(list, 1)) < 0) {
        fields_fail(f, "\"%s\" is not two numbers", name);
        return;
    }
    *a = (uint64_t)json_integer_value(json_array_get(list, 0));
    *b = (uint64_t)json_integer_value(json_array_get(list, 1));
}

static void get_versions(struct fields *f, struct facts_versions *v)
{
    const json_t *json = fields_object(f, "versions", FIELDS_REQUIRED);
    struct fields g = fields_make(json, "versions", f->e);

    if (!json)
        return;
    fields_text(&g, "weft", FIELDS_REQUIRED, 0, sizeof(v->weft), v->weft);
    fields_text(&g, "kernel", FIELDS_REQUIRED, 0, sizeof(v->kernel), v->kernel);
    fields_text(&g, "python", FIELDS_REQUIRED, 0, sizeof(v->python), v->python);
    fields_text(&g, "torch", FIELDS_REQUIRED, 0, sizeof(v->torch), v->torch);
    fields_text(&g, "nccl", FIELDS_REQUIRED, 0, sizeof(v->nccl), v->nccl);
    if (fields_end(&g) != 0)
        f->failed = fields_end(&g);
}

static void get_interfaces(struct fields *f, struct facts *ret)
{
    const json_t *list = fields_array(f, "interfaces", FIELDS_REQUIRED, 0, FACTS_INTERFACES_MAX);
    const json_t *item;
    size_t i;

    if (!list)
        return;
    json_array_foreach(list, i, item) {
        struct fields g = fields_make(item, "an interface", f->e);

        fields_text(&g, "name", FIELDS_REQUIRED, 0, sizeof(ret->interfaces[i].name),
            ret->interfaces[i].name);
        get_any_address(&g, "address", &ret->interfaces[i].address);
        fields_bool(&g, "running", FIELDS_REQUIRED, &ret->interfaces[i].running);
        if (fields_end(&g) != 0) {
            f->failed = fields_end(&g);
            return;
        }
    }
    ret->n_interfaces = json_array_size(list);
}

int facts_decode(struct facts *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the facts", e);
    struct facts facts = {.tcp_restarts = true};

    get_versions(&f, &facts.versions);
    get_pair(&f, "nofile", &facts.nofile_soft, &facts.nofile_hard);
    fields_u64(&f, "memlock", FIELDS_REQUIRED, 0, INT64_MAX, &facts.memlock_hard);
    fields_bool(&f, "rdma", FIELDS_REQUIRED, &facts.has_rdma);
    get_pair(&f, "tcpBuffers", &facts.tcp_receive_max, &facts.tcp_send_max);
    fields_bool(&f, "tcpRestarts", FIELDS_OPTIONAL, &facts.tcp_restarts);
    fields_text(&f, "interface", FIELDS_REQUIRED, 0, sizeof(facts.interface), facts.interface);
    get_any_address(&f, "address", &facts.address);
    get_any_address(&f, "hostAddress", &facts.host_address);
    fields_text(&f, "hostname", FIELDS_OPTIONAL, 0, sizeof(facts.hostname), facts.hostname);
    fields_text(&f, "ncclIfname", FIELDS_REQUIRED, 0, sizeof(facts.nccl_ifname), facts.nccl_ifname);
    fields_text(&f, "ncclFamily", FIELDS_REQUIRED, 0, sizeof(facts.nccl_family), facts.nccl_family);
    fields_u64(&f, "traffic", FIELDS_REQUIRED, 0, INT64_MAX, &facts.traffic);
    fields_u64(&f, "jobs", FIELDS_REQUIRED, 0, UINT32_MAX, &facts.jobs);
    get_interfaces(&f, &facts);
    if (fields_end(&f) == 0)
        *ret = facts;
    return fields_end(&f);
}
