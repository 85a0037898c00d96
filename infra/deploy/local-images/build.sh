#!/usr/bin/env bash
# Makes images to build and test with where no image registry can be reached: out of Debian's packages, and of the Node.js and npm
# on the PATH. Needs root (for debootstrap), a Docker engine and Node.js 24.
#
#   turnlog-local/debian:bookworm   what the others start from
#   turnlog-local/node:24           docker build --build-arg NODE_IMAGE=turnlog-local/node:24 …
#   turnlog-local/postgres:15       TURNLOG_POSTGRES_IMAGE=turnlog-local/postgres:15 npm test …
#   turnlog-local/haproxy:2         HAPROXY_IMAGE=turnlog-local/haproxy:2 docker compose …
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DOCKER_BUILDKIT=1

debootstrap --variant=minbase bookworm "$work/debian" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
rm -rf "$work"/debian/var/cache/apt/archives/*.deb
tar -C "$work/debian" -c . | docker import - turnlog-local/debian:bookworm

mkdir "$work/node"
cp "$(node -p process.execPath)" "$work/node/node"
cp -r "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$work/node/npm"
docker build -f "$folder/node.Dockerfile" -t turnlog-local/node:24 "$work/node"

# The network of the host: its way to the Debian mirror need not be one that a bridge has.
docker build --network host -f "$folder/postgres.Dockerfile" -t turnlog-local/postgres:15 "$folder"
docker build --network host -f "$folder/haproxy.Dockerfile" -t turnlog-local/haproxy:2 "$folder"
