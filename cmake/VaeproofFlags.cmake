# Language, warnings and the flags the bits depend on, as the interface target
# vaeproof_flags. Finds no package, so that a build without the file formats
# (ref/tests/determinism/bare) compiles the same code in the same way.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")   # no -DNDEBUG: asserts stay, they cost nothing here
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

add_library(vaeproof_flags INTERFACE)
# Bits first: no contraction unless a file asks for it (clause N4), no
# re-association, no excess precision.
target_compile_options(vaeproof_flags INTERFACE
  -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
  -Wmissing-prototypes -Wvla -Werror)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(vaeproof_flags INTERFACE -fexcess-precision=standard)
endif()
target_compile_definitions(vaeproof_flags INTERFACE _GNU_SOURCE)
if(VAEPROOF_SANITIZE)
  target_compile_options(vaeproof_flags INTERFACE
    -fsanitize=${VAEPROOF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(vaeproof_flags INTERFACE -fsanitize=${VAEPROOF_SANITIZE})
endif()
if(VAEPROOF_COVERAGE)
  target_compile_options(vaeproof_flags INTERFACE --coverage)
  target_link_options(vaeproof_flags INTERFACE --coverage)
endif()
