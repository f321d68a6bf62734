#!/bin/sh
# build.sh PINS TAG [ENGINE]: builds the tester image with podman (default) or docker.
# PINS is a file with one NAME=VALUE per line; docs/tester-image.md lists the names. PLATFORMS, such as
# linux/amd64,linux/arm64, selects other architectures than that of this machine.
set -eu

fail() {
  echo "build.sh: $*" >&2
  exit 1
}

[ $# -ge 2 ] || fail "usage: build.sh PINS TAG [podman|docker]"
pins=$1 tag=$2 engine=${3:-podman}
[ -r "$pins" ] || fail "$pins cannot be read. Create it as described in docs/tester-image.md"
case $engine in podman | docker) ;; *) fail "the engine is $engine, expected podman or docker" ;; esac
command -v "$engine" > /dev/null || fail "$engine is not installed. Install it, or name the other engine"

# The values are read, never executed: the file is not sourced.
pin() {
  sed -n "s/^$1=//p" "$pins" | tail -n 1
}

unknown=$(sed 's/#.*//' "$pins" | grep -v '^[[:space:]]*$' |
  grep -Ev '^(BUILD_IMAGE|BASE_IMAGE|(PERFTEST|NCCL_TESTS|MPICH)_(URL|SHA256)|NVCC_GENCODE)=' | head -n 1) || true
[ -z "$unknown" ] || fail "$pins has an unknown line: $unknown"

set --
for name in BUILD_IMAGE BASE_IMAGE; do
  value=$(pin "$name")
  echo "$value" | grep -Eq '^[^[:space:]@]+@sha256:[0-9a-f]{64}$' ||
    fail "$name is '$value', expected an image with its digest (NAME@sha256:64 hexadecimal digits). Set it in $pins"
  set -- "$@" --build-arg "$name=$value"
done
for name in PERFTEST NCCL_TESTS MPICH; do
  url=$(pin "${name}_URL") sum=$(pin "${name}_SHA256")
  echo "$url" | grep -Eq '^https://[^[:space:]]+$' ||
    fail "${name}_URL is '$url', expected an https URL of a source archive. Set it in $pins"
  echo "$sum" | grep -Eq '^[0-9a-f]{64}$' ||
    fail "${name}_SHA256 is '$sum', expected 64 hexadecimal digits. Review the archive, and set its sha256sum in $pins"
  set -- "$@" --build-arg "${name}_URL=$url" --build-arg "${name}_SHA256=$sum"
done
set -- "$@" --build-arg "NVCC_GENCODE=$(pin NVCC_GENCODE)"

folder=$(cd "$(dirname "$0")" && pwd)
if [ "$engine" = podman ]; then
  # podman would add what it builds to a manifest of an earlier build, whose images would stay in it.
  if podman manifest exists "$tag"; then
    fail "$tag exists already, and the build would add to it. Choose another tag, or remove it with: podman manifest rm $tag"
  fi
  exec podman build --format docker ${PLATFORMS:+--platform "$PLATFORMS"} --manifest "$tag" "$@" --file "$folder/Containerfile" "$folder"
fi
# An image of several platforms cannot be loaded into docker's store: it is pushed to the registry of the tag.
output=--load
case ${PLATFORMS:-} in *,*) output=--push ;; esac
exec docker buildx build ${PLATFORMS:+--platform "$PLATFORMS"} "$output" --tag "$tag" "$@" --file "$folder/Containerfile" "$folder"
