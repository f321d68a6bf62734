#!/bin/sh
# fetch.sh URL SHA256 FOLDER: downloads a source archive, requires its checksum, and unpacks it into FOLDER.
set -eu
url=$1 sum=$2 folder=$3
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
curl --fail --silent --show-error --location --proto =https --proto-redir =https --output "$archive" "$url"
if ! echo "$sum  $archive" | sha256sum --check --status; then
  echo "fetch: $url has the sha256 $(sha256sum "$archive" | cut -d ' ' -f 1), expected $sum" >&2
  exit 1
fi
mkdir "$folder"
tar --extract --file "$archive" --directory "$folder" --strip-components 1
