/* nft.c - see nft.h. */
#include "net/netlink/nft.h"

#include <errno.h>
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

static int run(const char *commands, struct err *e)
{
    _cleanup_(nft_freep) struct nft_ctx *ctx = NULL;
    const char *said;
    int r = check_kernel(e);

    if (r < 0)
        return r;
    ctx = nft_ctx_new(NFT_CTX_DEFAULT);
    if (!ctx || nft_ctx_buffer_output(ctx) < 0 || nft_ctx_buffer_error(ctx) < 0)
        return err_set(e, -ENOMEM, "no memory for the packet filter");
    if (nft_run_cmd_from_buffer(ctx, commands) == 0)
        return 0;
    said = nft_ctx_get_error_buffer(ctx);
    return err_set(e, -EINVAL, "the kernel's packet filter refuses: %.*s",
        said ? (int)strcspn(said, "\n") : 0, said ? said : "");
}

int nft_replace_table(const char *family, const char *table, const char *body, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;

    /* Adding what is there already does nothing, so that there is something to delete. */
    str_addf(&text, "add table %s %s\ndelete table %s %s\n", family, table, family, table);
    if (body)
        str_addf(&text, "table %s %s {\n%s\n}\n", family, table, body);
    return text.failed ? err_set(e, -ENOMEM, "no memory for the packet filter")
                       : run(str_text(&text), e);
}
