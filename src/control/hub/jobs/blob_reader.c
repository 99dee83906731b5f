/* blob_reader.c - see blob_reader.h. */
#include "blob_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "store/store.h"

struct blob_reader {
    struct store *store; /* pins */
    struct list done;    /* owns struct blob_read: those that can be taken */
    unsigned n_asked;    /* blobs asked of the store and not in @done; they pin this */
    unsigned n;          /* blobs of both kinds */
    size_t bytes;        /* of all of them */
    bool is_freed;       /* blob_reader_free() was called: freed with the store's last answer */
};

struct blob_reader *blob_reader_new(struct store *store)
{
    struct blob_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    reader->store = store;
    list_init(&reader->done);
    return reader;
}

struct blob_read *blob_read_free(struct blob_read *read)
{
    if (!read)
        return NULL;
    str_deinit(&read->messages);
    free(read);
    return NULL;
}

struct blob_reader *blob_reader_free(struct blob_reader *reader)
{
    struct blob_read *read;

    if (!reader)
        return NULL;
    while ((read = blob_reader_take(reader)))
        blob_read_free(read);
    reader->is_freed = true;
    if (reader->n_asked == 0)
        free(reader);
    return NULL;
}

static void read_piece(struct blob_read *read, const char *text)
{
    uint8_t buf[RDZV_CHUNK];
    struct rdzv_head head;
    struct rdzv_wire m = read->m;
    size_t len = 0;

    read->r = read->piece == 0 ? rdzv_head_decode(&head, buf, &len, text, &read->e)
                               : rdzv_piece_decode(buf, &len, text, &read->e);
    if (read->r != 0)
        return;
    m.data = buf;
    m.len = len;
    m.has_more = read->piece + 1 < read->entry.n_pieces;
    rdzv_wire_encode(&read->messages, &m);
}

/* All answers have come. */
static void finish(struct blob_read *read)
{
    struct blob_reader *reader = read->reader;

    reader->n_asked--;
    list_add_tail(&reader->done, &read->link);
    if (reader->is_freed)
        (void)blob_reader_free(reader);
}

static void on_piece(void *ctx, const struct store_answer *a)
{
    struct blob_read *read = ctx;
    bool was_good = read->r == 0;

    if (was_good && a->r == 0)
        read_piece(read, a->items[0].value);
    else if (was_good && (read->r = a->r) != 0)
        read->e = *a->e;
    if (was_good && read->r != 0)
        (void)rdzv_key_of_piece(read->bad, read->first, read->entry.slot, read->piece);
    if (++read->piece == read->entry.n_pieces)
        finish(read);
}

bool blob_reader_add(
    struct blob_reader *reader, const struct job *job, const struct blob_entry *entry)
{
    struct blob_read *read = calloc(1, sizeof(*read));
    unsigned i = 0;

    if (!read)
        return false;
    read->reader = reader;
    read->entry = *entry;
    read->m = (struct rdzv_wire){.type = RDZV_WIRE_LOAD,
        .job = job->number,
        .run = job->record.run,
        .kind = entry->kind,
        .hash = entry->hash};
    (void)rdzv_key_of_blob(read->first, entry->kind, job->network->name, job->name, &entry->hash);
    while (i < entry->n_pieces) {
        char key[RDZV_KEY_MAX];

        if (store_get(reader->store, rdzv_key_of_piece(key, read->first, entry->slot, i), on_piece,
                read, &read->e) != 0)
            break;
        i++;
    }
    if (i == 0) {
        free(read);
        return false;
    }
    reader->n_asked++;
    reader->n++;
    reader->bytes += entry->len;
    if (i < entry->n_pieces) {
        /* The store takes no more: the pieces that it did take are as good as none. */
        read->r = -EIO;
        read->entry.n_pieces = (uint16_t)i;
    }
    return true;
}

unsigned blob_reader_count(const struct blob_reader *reader)
{
    return reader->n;
}

size_t blob_reader_bytes(const struct blob_reader *reader)
{
    return reader->bytes;
}

bool blob_reader_has_some(const struct blob_reader *reader)
{
    return !list_is_empty(&reader->done);
}

struct blob_read *blob_reader_take(struct blob_reader *reader)
{
    struct blob_read *read = list_first(&reader->done, struct blob_read, link);

    if (!read)
        return NULL;
    list_remove(&read->link);
    reader->n--;
    reader->bytes -= read->entry.len;
    return read;
}
