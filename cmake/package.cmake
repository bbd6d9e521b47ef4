# `cpack -G DEB`: Debian's packages `tide` (programs, library, kernelspec), `libtide-dev` and, where CUDA's module is
# built, `tide-cuda`; `tide-openmpi` and `tide-mpich` for each MPI that was there. cmake/pack builds what belongs into them and calls it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Tide authors <tide@localhost>")
set(CPACK_PACKAGE_VENDOR "The Tide authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tensors, autograd and a profiler, scripted from Lua")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tide dev)
if(TARGET tide_cuda)
    list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
get_property(mpi_modules GLOBAL PROPERTY TIDE_MPI_MODULES)
foreach(module ${mpi_modules})
    string(REPLACE tide_mpi_ "" mpi ${module})
    list(APPEND CPACK_COMPONENTS_ALL ${mpi})
endforeach()

# The kernelspec names the place where the kernel will be.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
# Folders don't take their modes from who builds.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}) # where CUDA's module finds libtide

set(CPACK_COMPONENT_TIDE_DESCRIPTION "laboratory for tensors, autograd and profiling
 A tensor engine in C, scripted from Lua 5.4: the prompt tide, a kernel for Jupyter, a module for lua5.4, and libtide.")
set(CPACK_DEBIAN_TIDE_PACKAGE_NAME tide)
set(CPACK_DEBIAN_TIDE_PACKAGE_SECTION math)
set(CPACK_DEBIAN_TIDE_PACKAGE_SHLIBDEPS ON)
# Opened when a picture is shown or read; which of the names they bear depends on the distribution.
set(CPACK_DEBIAN_TIDE_PACKAGE_RECOMMENDS "libpng16-16t64 | libpng16-16, libturbojpeg0 | libturbojpeg")
set(CPACK_DEBIAN_TIDE_PACKAGE_SUGGESTS "jupyter-notebook | jupyterlab, lua5.4, tide-openmpi | tide-mpich")

set(CPACK_COMPONENT_DEV_DESCRIPTION "headers of libtide, Tide's tensor engine
 What C programs need that are linked with libtide: headers and a file for pkg-config.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtide-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "tide (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_CUDA_DESCRIPTION "CUDA's backend of Tide
 Loaded by Tide where a program asks for a CUDA device.")
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME tide-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION math)
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "tide (= ${PROJECT_VERSION})")

set(CPACK_COMPONENT_OPENMPI_DESCRIPTION "jobs of several processes of Tide on Open MPI
 Loaded by Tide where mpirun, or tide-run, started the process.")
set(CPACK_DEBIAN_OPENMPI_PACKAGE_NAME tide-openmpi)
set(CPACK_DEBIAN_OPENMPI_PACKAGE_SECTION math)
set(CPACK_DEBIAN_OPENMPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_OPENMPI_PACKAGE_DEPENDS "tide (= ${PROJECT_VERSION}), openmpi-bin")

set(CPACK_COMPONENT_MPICH_DESCRIPTION "jobs of several processes of Tide on MPICH
 Loaded by Tide where mpirun, or tide-run, started the process.")
set(CPACK_DEBIAN_MPICH_PACKAGE_NAME tide-mpich)
set(CPACK_DEBIAN_MPICH_PACKAGE_SECTION math)
set(CPACK_DEBIAN_MPICH_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPICH_PACKAGE_DEPENDS "tide (= ${PROJECT_VERSION}), mpich")

include(CPack)
