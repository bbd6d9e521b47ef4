/* test_session_help.c: what a question mark answers. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>

/* The answer to a question; the error where there is none. */
static const char *answer(const char *question) {
    value(question);
    return r.outcome == TIDE_OK ? (r.pager ? r.pager : "") : r.evalue;
}

TEST(a_bare_question_mark_introduces) {
    CHECK_CONTAINS(answer("?"), "Everything counts from 1.");
    CHECK_CONTAINS(answer("help"), "Everything counts from 1.");
    CHECK_CONTAINS(answer("help()"), "Everything counts from 1.");
    CHECK_CONTAINS(answer("help(tide.zeros)"), "Signature:");
}

/* The lines of code in the introduction, which are indented, run one after another. */
TEST(the_introduction_runs) {
    char text[4096], *lines[20];
    int ran = 0;
    snprintf(text, sizeof text, "%s", answer("?"));
    for (char *at = text, *end; *at && ran < 20; at = end) {
        end = at + strcspn(at, "\n");
        if (*end)
            *end++ = '\0';
        if (strncmp(at, "  ", 2) != 0)
            continue;
        char *remark = strstr(at + 2, "   ");
        if (remark)
            *remark = '\0';
        lines[ran++] = at;
    }
    CHECK(ran > 5);
    for (int i = 0; i < ran; i++) {
        value(lines[i]);
        CHECK_INT(r.outcome, TIDE_OK);
    }
}

TEST(tide_and_its_modules_show_what_is_there) {
    CHECK_CONTAINS(answer("?tide"), "  nn           Modules: layers");
    CHECK_CONTAINS(answer("?tide"), "float32 float64");
    CHECK(!strstr(answer("?tide"), "<function"));
    CHECK_CONTAINS(answer("?tide.nn"), "Linear");
    CHECK_CONTAINS(answer("?tide.nn.functional"), "softmax");
    CHECK_CONTAINS(answer("?string"), "format");
}

TEST(objects_and_dtypes_say_what_they_are) {
    value("model = tide.nn.Linear(2, 3)");
    CHECK_CONTAINS(answer("?model"), "Object of: Linear(");
    CHECK(!strstr(answer("?model"), "_names"));
    value("Own = tide.nn.class('Own'); function Own:init(n) self.fc = tide.nn.Linear(n, 1) end");
    value("own = Own(2)");
    CHECK_CONTAINS(answer("?own"), "Object of: Own(n)");
    CHECK(!strstr(answer("?own"), "_names"));
    CHECK_CONTAINS(answer("??own"), "self.fc = tide.nn.Linear(n, 1)");
    value(
        "function Own:forward(x) return self.fc(x) end\nfunction Own:again(x) return self(x) end");
    const char *text = answer("??own"), *init = strstr(text, "function Own:init");
    const char *forward = strstr(text, "function Own:forward"),
               *again = strstr(text, "function Own:again");
    CHECK(init && forward && again && init < forward && forward < again);
    CHECK_CONTAINS(answer("?tide.float32"), "32 bits");
    CHECK_CONTAINS(answer("?tide.int8"), "-128 to 127");
}

TEST(factories_list_all_their_options) {
    CHECK_CONTAINS(answer("?tide.zeros"), "bool requires_grad=false");
    CHECK_CONTAINS(answer("?tide.randn"), "bool requires_grad=false");
    CHECK_CONTAINS(answer("?tide.randint"), "classes from 1 to K are randint(1, K + 1, size)");
    CHECK(!strstr(answer("?tide.add"), "requires_grad"));
}

TEST(two_question_marks_show_lua_source) {
    CHECK_CONTAINS(answer("??tide.nn.Linear"), "forward = function(self, x)");
    CHECK_CONTAINS(answer("??tide.nn.init.zeros_"), "fill(x, ...)");
    CHECK_CONTAINS(answer("??model"), "forward = function(self, x)");
    CHECK(!strstr(answer("?tide.nn.Linear"), "function("));
}

TEST(what_is_not_known_brings_the_nearest) {
    CHECK_CONTAINS(answer("?nn.ModuleList"),
                   "Name:      tide.nn.ModuleList\nSignature: ModuleList(");
    CHECK_CONTAINS(answer("?torch.Tensor.T"), "PyTorch's x.T is Tide's x.T");
    CHECK_CONTAINS(answer("?torch.Tensor.data"), "Tide's x.data");
    CHECK_CONTAINS(answer("?tide.flaot64"),
                   "nothing is known of 'tide.flaot64': did you mean 'float64'?");
    CHECK_CONTAINS(answer("?modle"), "did you mean 'model'?");
    /* a name by itself is found in the rooms that it may be in, and PyTorch's are answered */
    CHECK_CONTAINS(answer("?Linear"), "Name:      tide.nn.Linear");
    CHECK_CONTAINS(answer("?Timer"), "Name:      tide.benchmark.Timer");
    CHECK_CONTAINS(answer("?MultivariateNormal"), "tide.distributions.MultivariateNormal");
    CHECK_CONTAINS(answer("?DataLoader"), "Name:      tide.data.DataLoader");
    CHECK_CONTAINS(answer("?IterableDataset"), "PyTorch's IterableDataset is");
    CHECK_CONTAINS(answer("?tide.plot.matshow"), "matplotlib's matshow is");
    CHECK_CONTAINS(answer("?nil"), "Lua's word for nothing");
    CHECK_INT(r.outcome, TIDE_ERROR);
}

int main(void) {
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    RUN(a_bare_question_mark_introduces);
    RUN(the_introduction_runs);
    RUN(tide_and_its_modules_show_what_is_there);
    RUN(objects_and_dtypes_say_what_they_are);
    RUN(factories_list_all_their_options);
    RUN(two_question_marks_show_lua_source);
    RUN(what_is_not_known_brings_the_nearest);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
