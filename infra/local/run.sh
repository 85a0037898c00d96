#!/bin/sh
# Runs the command of an npm script after ensure-installed.mjs has run. The shell is replaced by the
# command, so signals reach the command and the exit code is the command's. With --production first,
# development packages are not installed.
production=
if [ "$1" = --production ]; then production=$1; shift; fi
env -u NODE_COMPILE_CACHE node infra/local/ensure-installed.mjs $production &
ensuring=$!
# An interrupted installation removes its lock folder before this script ends.
trap 'kill $ensuring; wait $ensuring; exit 1' INT TERM HUP
wait $ensuring || exit
trap - INT TERM HUP
# Forget where `node` was found: the installation may have added node_modules/.bin/node.
hash -r
exec "$@"
