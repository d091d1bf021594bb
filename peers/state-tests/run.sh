#!/bin/sh
# Runs Ethereum's published state tests of the newest release through the executor of contracts, and prints one JSON line: what
# passed, failed, and is of forks that it does not run. No registry has these files: they are fetched from the release.
# Usage: peers/state-tests/run.sh LAB [ARCHIVE | FOLDER]
#   LAB: walras-lab. ARCHIVE: a release that is here already. FOLDER: state tests, such as GeneralStateTests of ethereum/tests.
set -eu
lab=$(realpath "${1:?usage: run.sh the program walras-lab}")
source=${2:-https://github.com/ethereum/execution-spec-tests/releases/latest/download/fixtures_stable.tar.gz}
if [ -d "$source" ]; then
    exec "$lab" statetest "$source" --json
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case $source in
https://*) curl --silent --show-error --fail --location "$source" | tar -xz -C "$folder" ;;
*) tar -xzf "$source" -C "$folder" ;;
esac
"$lab" statetest "$folder/fixtures/state_tests" --json
