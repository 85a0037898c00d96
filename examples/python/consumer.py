"""Keeps every event in a SQLite file: KAFKA_GROUP=mine python consumer.py events.db

Offsets are committed after what they stand for is stored. So a crash makes Kafka deliver some events
again, and the table knows those by their ids. What goes wrong ends it; started again, it goes on.
"""

import os
import signal
import sqlite3
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException

TOPICS = [
    os.environ.get("KAFKA_AGENTS_TOPIC", "turnlog.agents.v1"),
    os.environ.get("KAFKA_SESSIONS_TOPIC", "turnlog.sessions.v1"),
]
BATCH = 500

database = sqlite3.connect(sys.argv[1] if len(sys.argv) > 1 else "events.db")
database.execute(
    """CREATE TABLE IF NOT EXISTS events (
         place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL,
         revision INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL)"""
)

consumer = Consumer(
    {
        "bootstrap.servers": os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092"),
        # A name that stays goes on where it was. Consumers of one name share the partitions, and
        # soon take over what a dead one has left.
        "group.id": os.environ.get("KAFKA_GROUP", "turnlog-example-python"),
        "session.timeout.ms": 6_000,
        "auto.offset.reset": "earliest",
        # Aborted transactions stay in the topic; only what was committed counts.
        "isolation.level": "read_committed",
        # Nothing is committed that is not stored yet.
        "enable.auto.commit": False,
        # How soon it sees topics that the relay makes later.
        "topic.metadata.refresh.interval.ms": 5_000,
    }
)
consumer.subscribe(TOPICS)


ERASED = ("turnlog.agent.erased.v1", "turnlog.session.erased.v1")


def store(message):
    # A tombstone of a compacted topic; the event before it said that all of the key was erased.
    if message.value() is None:
        return
    # Headers and fields that are not asked for here are passed over: more of them may come.
    headers = {name: (value or b"").decode() for name, value in message.headers() or []}
    if headers["ce_type"] in ERASED:
        database.execute("DELETE FROM events WHERE key = ?", (message.key().decode(),))
    database.execute(
        """INSERT INTO events (id, key, revision, type, data) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (id) DO NOTHING""",
        (
            headers["ce_id"],
            message.key().decode(),
            int(headers["ce_streamrevision"]),
            headers["ce_type"],
            message.value().decode(),
        ),
    )


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    while True:
        # All events of a key are in one partition, and those of a partition come in order.
        messages = consumer.consume(BATCH, timeout=0.5)
        # A topic that the relay has not made yet is no reason to end.
        messages = [it for it in messages if it.error() != KafkaError.UNKNOWN_TOPIC_OR_PART]
        for it in messages:
            if it.error() is not None:
                raise KafkaException(it.error())
        with database:
            for it in messages:
                store(it)
        # Only now: after a crash before this line they come again. So they do if this is lost.
        if messages:
            consumer.commit(asynchronous=True)
finally:
    consumer.close()
