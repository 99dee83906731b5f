/* html.c - see html.h. */
#include "page/html.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* The length of the UTF-8 sequence at @text (RFC 3629 section 4), 0: it is none. */
static unsigned sequence_at(const unsigned char *text)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    unsigned n = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;

    if (text[0] < 0xc2 || text[0] > 0xf4)
        return text[0] < 0x80 ? 1 : 0;
    if (text[0] == 0xe0)
        low = 0xa0;
    if (text[0] == 0xed)
        high = 0x9f;
    if (text[0] == 0xf0)
        low = 0x90;
    if (text[0] == 0xf4)
        high = 0x8f;
    /* The zero at the end is below all of these. */
    for (unsigned i = 1; i < n; i++) {
        if (text[i] < (i == 1 ? low : 0x80) || text[i] > (i == 1 ? high : 0xbf))
            return 0;
    }
    return n;
}

static const char *escape(unsigned char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    }
    return c < 0x20 || c == 0x7f ? REPLACEMENT : NULL;
}

void html_text(struct str *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        unsigned n = sequence_at(at);
        const char *escaped = n == 0 ? REPLACEMENT : escape(*at);

        if (escaped)
            str_add(out, escaped);
        else
            str_add_bytes(out, (const char *)at, n);
        at += n > 0 ? n : 1;
    }
}

void html_begin(struct str *out, const char *title, const char *style, const char *hash)
{
    str_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    /* A file has no header that would say so; frame-ancestors is not heeded here. */
    str_addf(out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
        "style-src &#39;sha256-%s&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n",
        hash);
    str_add(out, "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html_text(out, title);
    str_addf(out, " · weft</title>\n<style>%s</style>\n</head>\n<body>\n", style);
}

void html_end(struct str *out)
{
    str_add(out, "</body>\n</html>\n");
}

void html_table(struct str *out, const char *title, const char *const *heads)
{
    str_add(out, "<h2>");
    html_text(out, title);
    str_add(out, "</h2>\n<table>\n<thead><tr>");
    for (size_t i = 0; heads[i]; i++) {
        bool is_number = heads[i][0] == '+';

        str_add(out, is_number ? "<th class=\"n\">" : "<th>");
        html_text(out, heads[i] + is_number);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead>\n<tbody>\n");
}

void html_table_end(struct str *out)
{
    str_add(out, "</tbody>\n</table>\n");
}

void html_cell(struct str *out, const char *text)
{
    str_add(out, "<td>");
    html_text(out, text);
    str_add(out, "</td>");
}

void html_number(struct str *out, const char *format, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    str_add(out, "<td class=\"n\">");
    html_text(out, text);
    str_add(out, "</td>");
}
