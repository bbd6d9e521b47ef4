/* test_nvrtc.cpp: programs compiled at run time for the played device. */
#include "check_cpp.h"
#include "include/nvrtc.h"

#include <string>
#include <vector>

struct compiled {
    nvrtcResult result;
    std::string log, code;
};

static compiled compile(const char *text, std::vector<const char *> options = {},
                        const char *header = nullptr) {
    nvrtcProgram program;
    const char *name = "given.h";
    CHECK_INT(nvrtcCreateProgram(&program, text, "test.cu", header != nullptr, &header, &name),
              NVRTC_SUCCESS);
    compiled c;
    c.result = nvrtcCompileProgram(program, (int)options.size(), options.data());
    size_t bytes = 0;
    CHECK_INT(nvrtcGetProgramLogSize(program, &bytes), NVRTC_SUCCESS);
    c.log.resize(bytes);
    nvrtcGetProgramLog(program, &c.log[0]);
    if (c.result == NVRTC_SUCCESS) {
        CHECK_INT(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
        c.code.resize(bytes);
        CHECK_INT(nvrtcGetCUBIN(program, &c.code[0]), NVRTC_SUCCESS);
    }
    CHECK_INT(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
    return c;
}

static cudaLibrary_t load(const std::string &code) {
    cudaLibrary_t library = nullptr;
    CHECK_OK(cudaLibraryLoadData(&library, code.data(), NULL, NULL, 0, NULL, NULL, 0));
    return library;
}

TEST(a_program_runs_with_the_arguments_of_its_launch) {
    compiled c = compile("#include \"given.h\"\n"
                         "struct scale { double by; int n; };\n"
                         "extern \"C\" __global__ void __launch_bounds__(64) scaled(const float "
                         "*x, float *y, scale s) {\n"
                         "    int k = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "    if (k < s.n) y[k] = twice(x[k]) * (float)s.by + PLUS;\n"
                         "}\n",
                         {"--gpu-architecture=sm_90", "-DPLUS=1", "--std=c++17"},
                         "__device__ inline float twice(float x) { return 2 * x; }\n");
    CHECK_STR(c.result == NVRTC_SUCCESS ? "" : c.log.c_str(), "");
    cudaLibrary_t library = load(c.code);
    cudaKernel_t kernel;
    CHECK_INT(cudaLibraryGetKernel(&kernel, library, "none"), cudaErrorSymbolNotFound);
    CHECK_OK(cudaLibraryGetKernel(&kernel, library, "scaled"));
    float *x = counting<float>(100, 0), *y = device_array<float>(100);
    struct {
        double by;
        int n;
    } s = {1.5, 100};
    void *args[] = {&x, &y, &s};
    td_played_reset_counts();
    CHECK_OK(cudaLaunchKernel((const void *)kernel, 2, 64, args, 0, 0));
    s.by = 100; /* the launch has copied it */
    CHECK_CLOSE(read_one(y + 99), 298, 0);
    CHECK_INT(td_played_launches_of("scaled"), 1);
    CHECK_OK(cudaLibraryUnload(library));
    CHECK_INT(cudaLaunchKernel((const void *)kernel, 2, 64, args, 0, 0),
              cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
    cudaFree(x), cudaFree(y);
}

TEST(threads_of_a_program_meet) {
    compiled c =
        compile("extern \"C\" __global__ void total(int *out) {\n"
                "    __shared__ int parts[4];\n"
                "    int sum = threadIdx.x;\n"
                "    for (int by = 16; by; by /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, by);\n"
                "    parts[threadIdx.x / 32] = sum;\n"
                "    __syncthreads();\n"
                "    if (threadIdx.x == 0) *out = parts[0] + parts[1] + parts[2] + parts[3];\n"
                "}\n");
    CHECK_STR(c.result == NVRTC_SUCCESS ? "" : c.log.c_str(), "");
    cudaLibrary_t library = load(c.code);
    cudaKernel_t kernel;
    CHECK_OK(cudaLibraryGetKernel(&kernel, library, "total"));
    int *out = device_array<int>(1);
    void *args[] = {&out};
    CHECK_OK(cudaLaunchKernel((const void *)kernel, 1, 128, args, 0, 0));
    CHECK_INT(read_one(out), 127 * 64);
    CHECK_OK(cudaLibraryUnload(library));
    cudaFree(out);
}

TEST(errors_of_programs_come_with_a_log) {
    compiled c = compile("extern \"C\" __global__ void k(int *p) { *p = nonsense; }\n");
    CHECK_INT(c.result, NVRTC_ERROR_COMPILATION);
    CHECK_CONTAINS(c.log.c_str(), "nonsense");
    c = compile("#include <vector>\n");
    CHECK_INT(c.result, NVRTC_ERROR_COMPILATION);
    CHECK_CONTAINS(c.log.c_str(), "cannot open source file \"vector\"");
    CHECK_INT(compile("", {"--no-such-option"}).result, NVRTC_ERROR_INVALID_OPTION);
    cudaLibrary_t library;
    CHECK_INT(
        cudaLibraryLoadData(&library, std::string(64, 'x').data(), NULL, NULL, 0, NULL, NULL, 0),
        cudaErrorInvalidKernelImage);
    cudaGetLastError();
}

int main() {
    RUN(a_program_runs_with_the_arguments_of_its_launch);
    RUN(threads_of_a_program_meet);
    RUN(errors_of_programs_come_with_a_log);
    return check_finish();
}
