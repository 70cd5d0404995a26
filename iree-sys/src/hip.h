// HIP's structures whose layout this crate needs; bindgen alone reads it.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
