#!/bin/sh
# The four tools of NVIDIA's compute-sanitizer over tests for a GPU, each for a limited time, and a summary:
#
#     tools/sanitize.sh [FOLDER [SECONDS]]        # logs into FOLDER, sanitize by default; 120 s for each of 12 runs
#
# PYTHON names the Python that has CuPy, SANITIZER the program, TOOLS and PARTS some of the work. Kernels run tens to
# hundreds of times as long under it, so these are tests of small problems that launch all kinds of kernels that wait,
# each for one kernel set after the other. A run that is cut off counts what it has seen until then. The tests run
# once without a tool before, so that all is compiled: a tool does not attach while processes beside the test compile.
#
# memcheck    accesses outside of allocations, and errors of CUDA
# racecheck   races in shared memory; docs/explanation/progress.md lists those that are meant
# initcheck   loads of global memory that nobody wrote; vectors of sentinels and epochs are written before the first sweep
# synccheck   barriers that not all threads reach
#
# Kernels of CuPy are left out: racecheck warns of its `nonzero`.
#
# The exit status is 1 where a tool has found anything, a test fails or none has run to its end. CuPy's pool of
# memory is off: in it arrays lie in a few allocations, and memcheck would see only what is outside of these.
set -u
cd "$(dirname "$0")/.." || exit 2
FOLDER=${1:-sanitize}
SECONDS_EACH=${2:-120}
PYTHON=${PYTHON:-python3}
SANITIZER=${SANITIZER:-compute-sanitizer}
TOOLS=${TOOLS:-memcheck racecheck initcheck synccheck}
PARTS=${PARTS:-sweeps colorings multigrid}
command -v "$SANITIZER" > /dev/null || { echo "$SANITIZER is not found; it comes with the CUDA toolkit" >&2; exit 2; }
mkdir -p "$FOLDER"

tests_of() {
    case $1 in
    sweeps) echo "tests/test_progress.py -k (sweeps_and_factorizations_end or solves_end) and 3-blocks" ;;
    colorings) echo "tests/test_progress.py -k colorings_end and rmat and 3-blocks" ;;
    multigrid) echo "tests/test_progress.py -k multigrid_ends and 3-blocks" ;;
    esac
}

run() {  # the tests of a part, by whatever the other arguments start
    part=$(tests_of "$1")
    shift
    timeout "$SECONDS_EACH" env MCPRECOND_NUM_THREADS=2 PYTHONPATH=".:tests${PYTHONPATH:+:$PYTHONPATH}" "$@" \
        "$PYTHON" -m pytest -v -p no:cacheprovider -p without_pool -o faulthandler_timeout=60 -m gpu \
        --hypothesis-profile gpu "${part%% *}" -k "${part#* -k }"
}

for group in $PARTS; do
    run "$group" > "$FOLDER/compile-$group.txt" 2>&1
done
failed=0
printf '%-10s %-10s %8s %8s %8s  %s\n' tool tests passed failed errors log
for tool in $TOOLS; do
    for group in $PARTS; do
        log="$FOLDER/$tool-$group.txt"
        run "$group" "$SANITIZER" --tool "$tool" --target-processes application-only --print-limit 50 \
            --kernel-name-exclude kernel_substring=cupy_ --error-exitcode 9 > "$log" 2>&1
        status=$?
        passed=$(grep -c 'PASSED *\[' "$log")
        broken=$(grep -c '\(FAILED\|ERROR\) *\[' "$log")
        # Without a summary, where it is cut off, what it has said until then.
        errors=$(sed -n 's/.* SUMMARY: \([0-9]*\) .*/\1/p' "$log" | head -1)
        errors=${errors:-$(grep -c '^========= \(Invalid\|Error\|Race\|Warning\|Uninitialized\|Barrier\|Program\)' "$log")}
        [ "$status" = 124 ] && note="$log (cut off)" || note=$log
        [ "$passed" != 0 ] && [ "$broken" = 0 ] && [ "$errors" = 0 ] && { [ "$status" = 0 ] || [ "$status" = 124 ]; } || failed=1
        printf '%-10s %-10s %8s %8s %8s  %s\n' "$tool" "$group" "$passed" "$broken" "$errors" "$note"
    done
done
exit $failed
