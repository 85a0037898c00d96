FROM turnlog-local/debian:bookworm
# Debian's package would make a cluster while it is installed; the entry point makes it, with the password that it is given.
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-common \
    && sed -ri 's/^#?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf \
    && apt-get install --yes --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/15/docker LC_ALL=C.UTF-8
COPY --chmod=755 postgres-entrypoint.sh /usr/local/bin/
USER postgres
RUN mkdir -p "$PGDATA" && chmod 700 "$PGDATA"
VOLUME /var/lib/postgresql
EXPOSE 5432
# A fast shut-down: SIGTERM would wait for every client to go.
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint.sh"]
CMD ["postgres"]
