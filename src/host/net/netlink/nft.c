/* nft.c - see nft.h. */
#include "net/netlink/nft.h"

#include <errno.h>
#include <endian.h>
#include <jansson.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/text.h"
#include "net/netlink/netlink.h"
#include "os/file.h"

static void nft_freep(struct nft_ctx **ctx)
{
    if (*ctx)
        nft_ctx_free(*ctx);
}

/* Asked first: without it libnftables ends the whole process. */
static int check_kernel(struct err *e)
{
    _cleanup_(closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

    if (fd >= 0)
        return 0;
    return err_set(e, -errno, "this kernel has no packet filter (nf_tables): %s", strerror(errno));
}

static int open_filter(struct nft_ctx **ret, struct err *e)
{
    _cleanup_(nft_freep) struct nft_ctx *ctx = NULL;
    int r = check_kernel(e);

    if (r < 0)
        return r;
    ctx = nft_ctx_new(NFT_CTX_DEFAULT);
    if (!ctx || nft_ctx_buffer_output(ctx) < 0 || nft_ctx_buffer_error(ctx) < 0)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    *ret = TAKE_PTR(ctx);
    return 0;
}

static int run_in(struct nft_ctx *ctx, const char *commands, struct err *e)
{
    const char *said;

    if (nft_run_cmd_from_buffer(ctx, commands) == 0)
        return 0;
    said = nft_ctx_get_error_buffer(ctx);
    return err_set(e, -EINVAL, "the kernel's packet filter refuses: %.*s",
        said ? (int)strcspn(said, "\n") : 0, said ? said : "");
}

int nft_run(const char *commands, struct err *e)
{
    _cleanup_(nft_freep) struct nft_ctx *ctx = NULL;
    int r = open_filter(&ctx, e);

    return r < 0 ? r : run_in(ctx, commands, e);
}

int nft_replace_table(const char *family, const char *table, const char *body, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;

    /* Adding what is there already does nothing, so that there is something to delete. */
    str_addf(&text, "add table %s %s\ndelete table %s %s\n", family, table, family, table);
    if (body)
        str_addf(&text, "table %s %s {\n%s\n}\n", family, table, body);
    return text.failed ? err_set(e, -ENOMEM, "no memory for the packet filter")
                       : nft_run(str_text(&text), e);
}

/* Adds the objects of an answer to @list. */
static int add_listed(json_t *list, const char *text, struct err *e)
{
    json_auto_t *answer = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *objects = json_object_get(answer, "nftables");

    if (!json_is_array(objects))
        return err_set(e, -EOPNOTSUPP, "libnftables answers without JSON");
    return json_array_extend(list, (json_t *)objects) == 0
               ? 0
               : err_set(e, -ENOMEM, "no memory for the packet filter");
}

int nft_list(const char *family, const char *table, const char *const *what, size_t n, json_t **ret,
    struct err *e)
{
    _cleanup_(nft_freep) struct nft_ctx *ctx = NULL;
    json_auto_t *list = json_array();
    int r = open_filter(&ctx, e);

    if (r == 0)
        nft_ctx_output_set_flags(ctx, NFT_CTX_OUTPUT_JSON | NFT_CTX_OUTPUT_NUMERIC_ALL);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const char *space = strchr(what[i], ' ');
        _cleanup_(str_deinit) struct str command = STR_NULL;

        /* "list set inet TABLE NAME", but "list counters table inet TABLE". */
        if (space)
            str_addf(&command, "list %.*s %s %s%s", (int)(space - what[i]), what[i], family, table,
                space);
        else
            str_addf(&command, "list %s table %s %s", what[i], family, table);
        r = command.failed ? err_set(e, -ENOMEM, "no memory for the packet filter")
                           : run_in(ctx, str_text(&command), e);
        if (r == 0)
            r = add_listed(list, nft_ctx_get_output_buffer(ctx), e);
    }
    if (r == 0)
        *ret = json_incref(list);
    return r;
}

/* ---- counters alone ------------------------------------------------------------------------- */

static uint8_t family_number(const char *family)
{
    if (strcmp(family, "inet") == 0)
        return NFPROTO_INET;
    return strcmp(family, "ip6") == 0 ? NFPROTO_IPV6 : NFPROTO_IPV4;
}

struct counting {
    nft_counter_fn fn;
    void *ctx;
};

/* One object of the table. */
static int take_counter(const struct nlmsghdr *nlh, void *ctx)
{
    const struct counting *c = ctx;
    const struct nlattr *attrs[NFTA_OBJ_MAX + 1];
    const struct nlattr *data[NFTA_COUNTER_MAX + 1];
    size_t len = mnl_nlmsg_get_payload_len(nlh);

    if (len < sizeof(struct nfgenmsg))
        return -EBADMSG;
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(struct nfgenmsg)),
        len - sizeof(struct nfgenmsg), attrs, NFTA_OBJ_MAX + 1);
    if (!attrs[NFTA_OBJ_NAME] || !attrs[NFTA_OBJ_DATA] ||
        mnl_attr_validate(attrs[NFTA_OBJ_NAME], MNL_TYPE_NUL_STRING) < 0)
        return 0;
    netlink_attributes(mnl_attr_get_payload(attrs[NFTA_OBJ_DATA]),
        mnl_attr_get_payload_len(attrs[NFTA_OBJ_DATA]), data, NFTA_COUNTER_MAX + 1);
    if (data[NFTA_COUNTER_PACKETS] &&
        mnl_attr_validate(data[NFTA_COUNTER_PACKETS], MNL_TYPE_U64) >= 0)
        c->fn(c->ctx, mnl_attr_get_str(attrs[NFTA_OBJ_NAME]),
            be64toh(mnl_attr_get_u64(data[NFTA_COUNTER_PACKETS])));
    return 0;
}

int nft_each_counter(
    const char *family, const char *table, nft_counter_fn fn, void *ctx, struct err *e)
{
    struct counting counting = {.fn = fn, .ctx = ctx};
    struct netlink_message m = {.nlh = NULL};
    struct netlink nl = NETLINK_NULL;
    struct nfgenmsg *head;
    int r = netlink_open(&nl, NETLINK_NETFILTER);

    if (r < 0)
        return err_set(e, r, "this kernel has no packet filter (nf_tables): %s", strerror(-r));
    head = netlink_start(&m, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ, NLM_F_DUMP, sizeof(*head));
    head->nfgen_family = family_number(family);
    mnl_attr_put_strz(m.nlh, NFTA_OBJ_TABLE, table);
    mnl_attr_put_u32(m.nlh, NFTA_OBJ_TYPE, htobe32(NFT_OBJECT_COUNTER));
    r = netlink_request(&nl, m.nlh, take_counter, &counting);
    netlink_close(&nl);
    return r < 0 ? err_set(e, r, "the counters of the packet filter's table %s cannot be read: %s",
                       table, strerror(-r))
                 : 0;
}
