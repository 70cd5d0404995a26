/* What bindgen reads: HIP's public API as an AMD platform has it. */
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
