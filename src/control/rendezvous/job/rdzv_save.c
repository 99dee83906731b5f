/* rdzv_save.c - see rdzv_save.h. */
#include "rdzv_save.h"

static void say_piece(struct rdzv_save *s, struct rdzv_wire *m, const uint8_t *p, size_t len)
{
    size_t off = (size_t)m->piece * RDZV_CHUNK;

    m->data = p + off;
    m->len = len - off < RDZV_CHUNK ? len - off : RDZV_CHUNK;
    rdzv_link_say(s->link, m);
}

void rdzv_save_blob(struct rdzv_save *s, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len, const void *p, size_t len)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_PUT,
        .job = job,
        .run = run,
        .kind = (uint8_t)kind,
        .hash = rdzv_hash_of(name, name_len),
        .n_pieces = (uint16_t)rdzv_pieces(len)};

    /* The first piece is sent last: see rdzv_wire.h. */
    for (m.piece = 1; m.piece < m.n_pieces; m.piece++)
        say_piece(s, &m, p, len);
    m.piece = 0;
    say_piece(s, &m, p, len);
}

void rdzv_save_drop_blob(struct rdzv_save *s, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_DROP,
        .job = job,
        .run = run,
        .kind = (uint8_t)kind,
        .hash = rdzv_hash_of(name, name_len)};

    rdzv_link_say(s->link, &m);
}

void rdzv_save_wait(struct rdzv_save *s, struct rdzv_save_wait *w)
{
    w->seq = s->seq + 1;
    s->is_asked = true;
    list_add_tail(&s->waiting, &w->link);
}

void rdzv_save_forget(struct rdzv_save_wait *w)
{
    list_remove(&w->link);
}

void rdzv_save_flush(struct rdzv_save *s)
{
    if (s->is_asked) {
        s->is_asked = false;
        s->seq++;
        rdzv_link_say(s->link, &(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = s->seq});
    }
    if (s->link->out.len > 0)
        rdzv_link_flush(s->link);
}

void rdzv_save_on_saved(struct rdzv_save *s, uint64_t seq, int error)
{
    struct rdzv_save_wait *w;

    /* @done may call rdzv_save_wait() again. That waits for a later SYNC, so this loop ends. */
    while ((w = list_first(&s->waiting, struct rdzv_save_wait, link)) && w->seq <= seq) {
        list_remove(&w->link);
        w->done(w, error);
    }
}

void rdzv_save_init(struct rdzv_save *s, struct rdzv_link *link)
{
    *s = (struct rdzv_save){.link = link};
    list_init(&s->waiting);
}
