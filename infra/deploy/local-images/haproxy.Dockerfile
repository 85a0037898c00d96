FROM turnlog-local/debian:bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*
USER haproxy
# As the official image does it: SIGUSR1 lets connections end, and this is where it looks for its configuration.
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
