/* byte_depthwise.cu: convolutions of bytes of which each channel has a kernel of its own. A thread
 * has four neighbouring channels, which lie in one word, and strips of four neighbouring places of
 * the result; a block's weights stand in shared memory. */
#include "engine/cuda/quantized/byte_product.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

namespace {

enum {
    TD_DEPTHWISE_WORDS = 32, /* of four channels, of a block at most */
    TD_DEPTHWISE_CHANNELS = 4 * TD_DEPTHWISE_WORDS,
    TD_DEPTHWISE_TAPS = 128, /* elements of a kernel at most */
    TD_DEPTHWISE_STRIP = 4,  /* places of a thread at a time */
    TD_DEPTHWISE_TURNS = 2   /* strips of a thread */
};

struct td_cu_depthwise_weights {
    unsigned words[TD_DEPTHWISE_TAPS * TD_DEPTHWISE_WORDS];
    td_cu_byte_column columns[TD_DEPTHWISE_CHANNELS];
};

/* How a convolution is cut: strips of lines of the result, and words of channels by blocks. */
struct td_cu_depthwise_cut {
    long long strips, tiles; /* of a line; of words */
    int words, rows;         /* of a block: words of channels, threads for each */
};

__host__ __device__ inline td_cu_depthwise_cut td_depthwise_cut(const td_cu_byte_product &p) {
    const long long words = p.groups / 4;
    td_cu_depthwise_cut cut;
    cut.strips = (p.places[2] + TD_DEPTHWISE_STRIP - 1) / TD_DEPTHWISE_STRIP;
    cut.tiles = (words + TD_DEPTHWISE_WORDS - 1) / TD_DEPTHWISE_WORDS;
    cut.words = (int)((words + cut.tiles - 1) / cut.tiles);
    cut.rows = TD_GROUP_BLOCK / cut.words;
    return cut;
}

/* The weights of so many channels from `first` on. Has any a zero point other than 0? */
__device__ bool td_depthwise_load(const td_cu_byte_product &p, long long first, int channels,
                                  td_cu_depthwise_weights &w) {
    int shifted = 0;
    for (int at = (int)threadIdx.x; at < channels * (int)p.depth; at += TD_GROUP_BLOCK) {
        const int channel = at / (int)p.depth, tap = at % (int)p.depth;
        if (first + channel < p.groups)
            ((unsigned char *)w.words)[tap * TD_DEPTHWISE_CHANNELS + channel] =
                td_byte_weights(p, first + channel)[tap];
    }
    const int channel = (int)threadIdx.x;
    if (channel < channels && first + channel < p.groups) {
        w.columns[channel] = td_byte_column(p, first + channel);
        shifted = w.columns[channel].zero_point != 0;
    }
    return __syncthreads_or(shifted) != 0;
}

/* What a strip's places add up to, by place and channel: products with weights, and bytes of x. */
struct td_cu_depthwise_sums {
    int products[TD_DEPTHWISE_STRIP][4], bytes[TD_DEPTHWISE_STRIP][4];
};

/* Of a word with one byte left, a product of four is that byte's. */
template <bool SHIFTED>
__device__ void td_depthwise_add(td_cu_depthwise_sums &sums, int place, unsigned x, unsigned w) {
    TD_UNROLL
    for (int e = 0; e < 4; e++) {
        const unsigned one = x & 0xffu << 8 * e;
        sums.products[place][e] = td_add_unsigned_products(one, w, sums.products[place][e]);
        if (SHIFTED)
            sums.bytes[place][e] = td_add_unsigned_products(one, 0x01010101u, sums.bytes[place][e]);
    }
}

/* A line of the kernel, whose weights and first bytes of x are given; k: the place of x. */
template <bool SHIFTED>
__device__ void td_depthwise_line(const td_cu_byte_product &p, const unsigned *weights,
                                  const unsigned char *x, int k, bool inside,
                                  td_cu_depthwise_sums &sums) {
    const unsigned outside = (unsigned)p.x_zero_point * 0x01010101u, in = (unsigned)p.in[2];
    for (int c = 0; c < (int)p.kernel[2]; c++) {
        TD_UNROLL
        for (int u = 0; u < TD_DEPTHWISE_STRIP; u++) {
            const int at = c * (int)p.dilation[2] + u * (int)p.stride[2];
            const bool met = inside && (unsigned)(k + at) < in;
            td_depthwise_add<SHIFTED>(sums, u,
                                      met ? *(const unsigned *)(x + at * p.groups) : outside,
                                      weights[c * TD_DEPTHWISE_WORDS]);
        }
    }
}

/* The same of a kernel of WIDTH without stride and dilation, whose places share bytes of x. */
template <int WIDTH, bool SHIFTED>
__device__ void td_depthwise_shared_line(const td_cu_byte_product &p, const unsigned *weights,
                                         const unsigned char *x, int k, bool inside,
                                         td_cu_depthwise_sums &sums) {
    enum { SHARED = WIDTH + TD_DEPTHWISE_STRIP - 1 };
    const unsigned outside = (unsigned)p.x_zero_point * 0x01010101u, in = (unsigned)p.in[2];
    unsigned met[SHARED];
    TD_UNROLL
    for (int c = 0; c < SHARED; c++)
        met[c] = inside && (unsigned)(k + c) < in ? *(const unsigned *)(x + c * p.groups) : outside;
    TD_UNROLL
    for (int c = 0; c < WIDTH; c++) {
        TD_UNROLL
        for (int u = 0; u < TD_DEPTHWISE_STRIP; u++)
            td_depthwise_add<SHIFTED>(sums, u, met[u + c], weights[c * TD_DEPTHWISE_WORDS]);
    }
}

/* WIDTH: of a kernel whose places share bytes; 1: any. */
template <int WIDTH, bool SHIFTED>
__device__ void td_depthwise_strip(const td_cu_byte_product &p, const unsigned *weights,
                                   long long channel, long long row, td_cu_depthwise_sums &sums) {
    const td_cu_byte_place place = td_byte_place(p, row);
    for (int a = 0; a < (int)p.kernel[0]; a++) {
        const long long i = place.at[0] + a * p.dilation[0];
        for (int b = 0; b < (int)p.kernel[1]; b++, weights += p.kernel[2] * TD_DEPTHWISE_WORDS) {
            const long long j = place.at[1] + b * p.dilation[1];
            const long long first =
                ((place.image * p.in[0] + i) * p.in[1] + j) * p.in[2] + place.at[2];
            const unsigned char *x = p.x + first * p.groups + channel;
            const bool inside = i >= 0 && i < p.in[0] && j >= 0 && j < p.in[1];
            if (WIDTH > 1)
                td_depthwise_shared_line<WIDTH, SHIFTED>(p, weights, x, (int)place.at[2], inside,
                                                         sums);
            else
                td_depthwise_line<SHIFTED>(p, weights, x, (int)place.at[2], inside, sums);
        }
    }
}

__device__ void td_depthwise_store(const td_cu_byte_product &p, const td_cu_byte_column *columns,
                                   const int *sums, const int *bytes, long long at) {
    unsigned word = 0;
    TD_UNROLL
    for (int e = 0; e < 4; e++) {
        const float whole = td_byte_exact(columns[e], sums[e], bytes[e]);
        if (p.floats)
            ((float *)p.out)[at + e] = td_byte_float(p, columns[e], whole);
        else
            word |= (unsigned)td_byte_rounded(p, columns[e], whole, at + e) << 8 * e;
    }
    if (!p.floats)
        *(unsigned *)((unsigned char *)p.out + at) = word;
}

template <int WIDTH>
__global__ void td_byte_depthwise_kernel(const __grid_constant__ td_cu_byte_product p) {
    __shared__ td_cu_depthwise_weights weights;
    const td_cu_depthwise_cut cut = td_depthwise_cut(p);
    const int word = (int)threadIdx.x % cut.words;
    long long tile;
    const long long first =
        td_cu_divide(blockIdx.x, cut.tiles, &tile) * TD_DEPTHWISE_TURNS * cut.rows;
    const long long channel = (tile * cut.words + word) * 4;
    const bool shifted = td_depthwise_load(p, tile * cut.words * 4, cut.words * 4, weights);
    const int row = (int)threadIdx.x / cut.words;
    if (channel >= p.groups || row >= cut.rows)
        return;
    for (int k = 0; k < TD_DEPTHWISE_TURNS; k++) {
        long long strip;
        const long long line = td_cu_divide(first + k * cut.rows + row, cut.strips, &strip);
        const long long begin = line * p.places[2] + strip * TD_DEPTHWISE_STRIP;
        const long long left = p.places[2] - strip * TD_DEPTHWISE_STRIP;
        td_cu_depthwise_sums sums = {};
        if (begin >= p.count)
            return;
        if (shifted)
            td_depthwise_strip<WIDTH, true>(p, weights.words + word, channel, begin, sums);
        else
            td_depthwise_strip<WIDTH, false>(p, weights.words + word, channel, begin, sums);
        TD_UNROLL
        for (int u = 0; u < TD_DEPTHWISE_STRIP; u++)
            if (u < left)
                td_depthwise_store(p, weights.columns + 4 * word, sums.products[u], sums.bytes[u],
                                   td_byte_row_of_out(p, begin + u) * p.groups + channel);
    }
}
} // namespace

int td_cu_byte_is_depthwise(const td_cu_byte_product *p) {
    return p->channels == 1 && p->columns == 1 && p->groups % 4 == 0 && (uintptr_t)p->x % 4 == 0 &&
           p->depth <= TD_DEPTHWISE_TAPS;
}

cudaError_t td_cu_byte_depthwise(const td_cu_byte_product *p, cudaStream_t stream) {
    const td_cu_depthwise_cut cut = td_depthwise_cut(*p);
    const long long strips = p->count / p->places[2] * cut.strips;
    const long long each = TD_DEPTHWISE_TURNS * cut.rows;
    const unsigned blocks = (unsigned)((strips + each - 1) / each * cut.tiles);
    const bool shares = p->stride[2] == 1 && p->dilation[2] == 1;
    if (shares && p->kernel[2] == 3)
        return TD_LAUNCH_TOGETHER((td_byte_depthwise_kernel<3>), blocks, TD_GROUP_BLOCK, stream,
                                  *p);
    if (shares && p->kernel[2] == 5)
        return TD_LAUNCH_TOGETHER((td_byte_depthwise_kernel<5>), blocks, TD_GROUP_BLOCK, stream,
                                  *p);
    return TD_LAUNCH_TOGETHER((td_byte_depthwise_kernel<1>), blocks, TD_GROUP_BLOCK, stream, *p);
}
