/* nft.c - see nft.h. */
#include "net/netlink/nft.h"

#include <errno.h>
#include <jansson.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/text.h"
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
