# cmake --install: library, headers, find_package(vaeproof), pkg-config file.
include(CMakePackageConfigHelpers)
install(TARGETS vaeref EXPORT vaeproofTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ref/include/vaeref DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(tool vaeref_cli vaegolden vaebench vaecheck vaehost)
  if(TARGET ${tool})
    install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
foreach(backend ref onednn minimal)
  if(TARGET vaebackend_${backend})
    install(TARGETS vaebackend_${backend} LIBRARY DESTINATION lib/vaeproof)
  endif()
endforeach()
install(DIRECTORY conformance/include/vaeproof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY conformance/cases conformance/mustpass conformance/adapters DESTINATION share/vaeproof)
install(EXPORT vaeproofTargets NAMESPACE vaeproof:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vaeproof)
configure_package_config_file(cmake/vaeproofConfig.cmake.in
  ${CMAKE_BINARY_DIR}/vaeproofConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vaeproof)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/vaeproofConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
# From the folder of the .pc file up to the prefix, so that the tree can be moved.
file(RELATIVE_PATH VAEPROOF_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(cmake/vaeproof.pc.in ${CMAKE_BINARY_DIR}/vaeproof.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/vaeproofConfig.cmake ${CMAKE_BINARY_DIR}/vaeproofConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vaeproof)
install(FILES ${CMAKE_BINARY_DIR}/vaeproof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
