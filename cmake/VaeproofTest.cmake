# vaeproof_unit_test(NAME name SOURCES a.c b.c [LIBS ...] [LABELS ...] [TIMEOUT s])
# One Criterion binary, one ctest entry. Two traps of Criterion 2.4.1 are closed
# here: a run that matched no test exits 0 (FAIL_REGULAR_EXPRESSION), and a leak
# reported by LeakSanitizer leaves the test green (abort_on_error).
pkg_check_modules(CRITERION REQUIRED IMPORTED_TARGET criterion)

set(VAEPROOF_TEST_ENV
  "ASAN_OPTIONS=abort_on_error=1:detect_leaks=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1"
  "VAEPROOF_SHARED=${VAEPROOF_SHARED_DIR}"
  "VAEPROOF_BIN=${CMAKE_BINARY_DIR}/bin"
  "VAEPROOF_SOURCE=${CMAKE_SOURCE_DIR}"
  "OMP_WAIT_POLICY=passive" # waiting threads must not starve working ones on a busy machine
  "LC_ALL=C")

function(vaeproof_unit_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(VAEPROOF_SANITIZE MATCHES "thread")
    return() # Criterion cannot start under ThreadSanitizer; see vaeproof_plain_test
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_executable(test_${T_NAME} ${T_SOURCES})
  target_link_libraries(test_${T_NAME} PRIVATE vaeproof_flags ${T_LIBS} PkgConfig::CRITERION m)
  target_include_directories(test_${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/ref) # internal headers
  # Criterion's macros declare what these two warn about.
  target_compile_options(test_${T_NAME} PRIVATE -Wno-missing-prototypes -Wno-conversion)
  set_target_properties(test_${T_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${T_NAME} COMMAND test_${T_NAME} --jobs 1)
  set_tests_properties(${T_NAME} PROPERTIES
    ENVIRONMENT "${VAEPROOF_TEST_ENV}" LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    FAIL_REGULAR_EXPRESSION "Tested: 0 ")
endfunction()

# vaeproof_plain_test(NAME n SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT s] [ARGS ...])
# A main() that prints what it checked and returns 0, 1, or 77 (skipped, reason
# on stdout). Works under every sanitizer.
function(vaeproof_plain_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_executable(test_${T_NAME} ${T_SOURCES})
  target_link_libraries(test_${T_NAME} PRIVATE vaeproof_flags ${T_LIBS} m)
  set_target_properties(test_${T_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${T_NAME} COMMAND test_${T_NAME} ${T_ARGS})
  set_tests_properties(${T_NAME} PROPERTIES
    ENVIRONMENT "${VAEPROOF_TEST_ENV}" LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    SKIP_RETURN_CODE 77)
endfunction()

# vaeproof_script_test(NAME n SCRIPT path [LABELS ...] [TIMEOUT s]): a shell
# script; same exit codes as a plain test.
function(vaeproof_script_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT;SCRIPT" "LABELS;ARGS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_test(NAME ${T_NAME} COMMAND ${T_SCRIPT} ${T_ARGS})
  set_tests_properties(${T_NAME} PROPERTIES
    ENVIRONMENT "${VAEPROOF_TEST_ENV}" LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    SKIP_RETURN_CODE 77)
endfunction()
