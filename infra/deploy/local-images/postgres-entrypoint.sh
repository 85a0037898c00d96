#!/bin/sh
# What tests and compose.yaml use of the official image's entry point: POSTGRES_USER, POSTGRES_PASSWORD or
# POSTGRES_HOST_AUTH_METHOD, and POSTGRES_DB make the first database; the log says twice that the server is ready, because
# the database is made by a server that only the container can reach.
set -eu
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
    echo 'Set POSTGRES_PASSWORD to the password of the first user.' >&2
    exit 1
  fi
  password=$(mktemp)
  printf '%s\n' "${POSTGRES_PASSWORD:-unused}" > "$password"
  initdb --username="$user" --pwfile="$password" --auth-local=trust --auth-host="$method" --encoding=UTF8
  rm "$password"
  echo "host all all all $method" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start
  [ "$database" = postgres ] || createdb --username="$user" --maintenance-db=postgres "$database"
  pg_ctl --wait --mode=fast stop
fi

[ "$1" = postgres ] && shift
exec postgres -c listen_addresses='*' "$@"
