# `cmake --install`: component `tide` is programs, library with its modules, module for a plain Lua, kernelspec, man
# pages, completion; `dev` headers and pkg-config file; `cuda` CUDA's module; `openmpi` and `mpich` theirs; `rock` what LuaRocks takes, in one folder.
# Everything finds the library by its own place, so that the prefix may be moved; only the kernelspec names an absolute
# path, as Jupyter wants it.
include(GNUInstallDirs)
set(lua_folder ${CMAKE_INSTALL_LIBDIR}/lua/5.4)
file(RELATIVE_PATH bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH lua_to_lib /prefix/${lua_folder} /prefix/${CMAKE_INSTALL_LIBDIR})
set_target_properties(tide tide-kernel tide-run PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
set_target_properties(tide_module PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/${lua_to_lib}")
get_property(modules GLOBAL PROPERTY TIDE_LATE_MODULES)
set_target_properties(tide_engine PROPERTIES INSTALL_RPATH "$ORIGIN")
# Libraries that lie in a folder of their own are found where they were when Tide was linked.
set_target_properties(${modules} PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS tide tide-kernel tide-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tide)
install(TARGETS tide_engine ${modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tide)
install(TARGETS tide_module LIBRARY DESTINATION ${lua_folder} COMPONENT tide)
install(TARGETS tide_module tide_engine ${modules} LIBRARY DESTINATION . COMPONENT rock EXCLUDE_FROM_ALL)
if(TARGET tide_cuda)
    get_property(cuda_modules GLOBAL PROPERTY TIDE_CUDA_LATE_MODULES)
    set_target_properties(tide_cuda ${cuda_modules} PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS tide_cuda ${cuda_modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda
        OPTIONAL)
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tide-cuda RENAME copyright COMPONENT cuda)
endif()
get_property(mpi_modules GLOBAL PROPERTY TIDE_MPI_MODULES)
foreach(module ${mpi_modules})
    string(REPLACE tide_mpi_ "" mpi ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${mpi} OPTIONAL)
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tide-${mpi} RENAME copyright COMPONENT ${mpi})
endforeach()

# Headers include each other as "engine/core/tensor.h".
install(DIRECTORY engine DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tide COMPONENT dev
    FILES_MATCHING PATTERN "*.h" PATTERN cpu EXCLUDE PATTERN cuda EXCLUDE)
file(RELATIVE_PATH pkgconfig_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(engine/libtide.pc.in ${CMAKE_BINARY_DIR}/libtide.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/libtide.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libtide-dev RENAME copyright COMPONENT dev)

install(FILES repl/install/tide.1 repl/install/tide-run.1 jupyter-kernel/install/tide-kernel.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tide)
install(FILES repl/install/tide.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME tide COMPONENT tide)
install(FILES repl/install/tide.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    RENAME _tide COMPONENT tide)
install(FILES repl/install/tide.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT tide)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tide)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT tide)

# The kernel writes its own spec; below DESTDIR that would name where it lies now and not where it will run.
install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    execute_process(COMMAND \"\${root}/${CMAKE_INSTALL_BINDIR}/tide-kernel\" --install --prefix \"\${root}\"
        RESULT_VARIABLE code OUTPUT_QUIET)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR \"the kernelspec could not be written\")
    endif()
    set(folder share/jupyter/kernels/tide)
    file(READ \"\${root}/\${folder}/kernel.json\" spec)
    string(REPLACE \"\${root}/\" \"\${CMAKE_INSTALL_PREFIX}/\" spec \"\${spec}\")
    file(WRITE \"\${root}/\${folder}/kernel.json\" \"\${spec}\")
    foreach(file kernel.json logo-32x32.png logo-64x64.png logo-svg.svg)
        file(CHMOD \"\${root}/\${folder}/\${file}\" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/\${folder}/\${file}\")
    endforeach()" COMPONENT tide)

# What the last `cmake --install` put in place, taken away again.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
    -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
