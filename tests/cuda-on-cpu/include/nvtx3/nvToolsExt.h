/* nvToolsExt.h: ranges and marks of NVTX, written down for tests (played.h). */
#ifndef TIDE_PLAYED_NVTX_H
#define TIDE_PLAYED_NVTX_H

#ifdef __cplusplus
extern "C" {
#endif

int nvtxRangePushA(const char *message);
int nvtxRangePop(void);
void nvtxMarkA(const char *message);

#ifdef __cplusplus
}
#endif
#endif
