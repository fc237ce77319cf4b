# cmake "-DFILES=a.yaml;b.yaml" -DOUTPUT=builtin_targets.cpp -P embed_targets.cmake
#
# Writes the C++ file that holds every one of FILES as text: the definition of builtin_targets().
list(TRANSFORM FILES REPLACE "\\.yaml$" "")
list(SORT FILES)  # by name: tidl before tidl-np2
set(count 0)
set(entries "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file}.yaml text)
  string(APPEND entries "    {\"${name}\", R\"qcalib_yaml(${text})qcalib_yaml\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Written by embed_targets.cmake from configs/targets.
#include \"target/builtin_targets.h\"

#include <array>

namespace qcalib {

std::span<const BuiltinTarget> builtin_targets() {
    static constexpr std::array<BuiltinTarget, ${count}> targets{{
${entries}    }};
    return targets;
}

}  // namespace qcalib
")
