/* onednn.cpp: the table of oneDNN's calls, in a module of its own, and the wall around each.
 *
 * oneDNN is written in C++ and lets exceptions out of its C functions (std::bad_alloc first of
 * all), which end a program in C. Here they are caught, one call at a time, so that callers keep
 * what they own.
 */
#include "engine/cpu/loaded_libraries/onednn.h"

#include <new>

namespace {

template <class R> R failure(bool) {
    return R();
}
template <> dnnl_status_t failure<dnnl_status_t>(bool memory) {
    return memory ? dnnl_out_of_memory : dnnl_runtime_error;
}

template <auto fn> struct wall;
template <class R, class... A, R (*fn)(A...)> struct wall<fn> {
    static R call(A... args) noexcept {
        try {
            return fn(args...);
        } catch (const std::bad_alloc &) {
            return failure<R>(true);
        } catch (...) {
            return failure<R>(false);
        }
    }
};

} // namespace

extern "C" {
extern const td_late_onednn td_late_onednn_calls;
const td_late_onednn td_late_onednn_calls = {
#define TD_DNN_WALL(name) wall<dnnl_##name>::call,
    TD_DNN_SAME(TD_DNN_WALL)
#undef TD_DNN_WALL
#define TD_DNN_WALL(name) wall<td_dnn_##name>::call,
        TD_DNN_OWN(TD_DNN_WALL)
#undef TD_DNN_WALL
};
}
