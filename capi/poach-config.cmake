# find_package(poach): the targets poach::poach (shared), poach::static, poach::lace and poach::lace2 (Lace's lace.h,
# of versions 1.4 to 1.6 and of version 2, on poach::poach).
get_filename_component(_poach_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET poach::poach)
  add_library(poach::poach SHARED IMPORTED)
  set_target_properties(poach::poach PROPERTIES
    IMPORTED_LOCATION "${_poach_prefix}/lib/libpoach.so"
    IMPORTED_SONAME "libpoach.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_poach_prefix}/include")
  add_library(poach::static STATIC IMPORTED)
  set_target_properties(poach::static PROPERTIES
    IMPORTED_LOCATION "${_poach_prefix}/lib/libpoach.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_poach_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m")
  add_library(poach::lace INTERFACE IMPORTED)
  set_target_properties(poach::lace PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_poach_prefix}/include/poach/lace"
    INTERFACE_LINK_LIBRARIES poach::poach)
  add_library(poach::lace2 INTERFACE IMPORTED)
  set_target_properties(poach::lace2 PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_poach_prefix}/include/poach/lace2"
    INTERFACE_LINK_LIBRARIES poach::poach)
endif()
unset(_poach_prefix)
