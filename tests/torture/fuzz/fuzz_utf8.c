/* fuzz_utf8.c: bytes of a program, cut anywhere, as the UTF-8 that JSON carries; cursors in it. */
#include "tests/torture/fuzz/bytes.h"

#include "jupyter-kernel/content.h"
#include "jupyter-kernel/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t cut = bytes_choice(&data, &size);
    const char *text = size ? (const char *)data : "";
    tk_buffer out = {0}, whole = {0};
    tk_utf8_rest rest = {0};
    cut = cut < size ? cut : size;
    HOLDS(tk_utf8_repair(&rest, text, cut, &out));
    HOLDS(tk_utf8_repair(&rest, text + cut, size - cut, &out));
    HOLDS(tk_utf8_finish(&rest, &out));
    HOLDS(tk_utf8_repair(&rest, text, size, &whole) && tk_utf8_finish(&rest, &whole));
    HOLDS(out.len == whole.len && bytes_is_utf8(out.len ? out.data : "", out.len));
    for (size_t point = 0; point <= out.len && point < 50; point++) {
        size_t offset = tk_utf8_offset(out.data, out.len, point);
        HOLDS(offset <= out.len && tk_utf8_points(out.data, out.len, offset) <= point);
    }
    json_t *value = tk_json_text(text, size);
    HOLDS(json_is_string(value));
    json_decref(value);
    tk_buffer_clear(&out);
    tk_buffer_clear(&whole);
    return 0;
}
