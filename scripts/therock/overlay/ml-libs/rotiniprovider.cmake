# rotini, a hipDNN engine plugin that compiles graphs with IREE. Included by ml-libs/CMakeLists.txt if THEROCK_ENABLE_ROTINIPROVIDER.
#
# It is written in Rust and linked with nothing of ROCm: hipDNN opens it, and it opens HIP. So it needs none of the other sub-projects
# but HIP's headers, and no IREE compiler: that is found when a graph is first executed.

################################################################################
# hipDNN rotini provider
################################################################################

therock_enable_external_source("rotini" "${THEROCK_SOURCE_DIR}/optional-sources/rotini" OFF)

# HIP's headers come from the HIP of this build, unless others are named: then rotini builds alone.
set(THEROCK_ROTINI_HIP_HEADERS "" CACHE PATH "A directory with hip/ for rotini; empty: HIP is built first")
set(_rotini_hip_headers "${THEROCK_ROTINI_HIP_HEADERS}")
set(_rotini_build_deps)
if(NOT _rotini_hip_headers)
  list(APPEND _rotini_build_deps hip-clr)
  get_target_property(_rotini_hip_headers hip-clr THEROCK_DIST_DIR)
  cmake_path(APPEND _rotini_hip_headers include)
endif()

therock_cmake_subproject_declare(rotiniprovider
  USE_DIST_AMDGPU_TARGETS
  BACKGROUND_BUILD
  NO_MERGE_COMPILE_COMMANDS
  EXTERNAL_SOURCE_DIR "${THEROCK_ROTINI_SOURCE_DIR}"
  BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/rotiniprovider"
  CMAKE_ARGS
    "-DBUILD_TESTING=${THEROCK_BUILD_TESTING}"
    "-DROTINI_HIP_HEADERS=${_rotini_hip_headers}"
  BUILD_DEPS
    ${_rotini_build_deps}
)
therock_cmake_subproject_activate(rotiniprovider)

therock_provide_artifact(rotiniprovider
  TARGET_NEUTRAL
  DESCRIPTOR artifact-rotiniprovider.toml
  COMPONENTS
    dbg
    lib
    test
  SUBPROJECT_DEPS
    rotiniprovider
)
