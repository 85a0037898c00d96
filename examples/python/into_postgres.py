"""Exactly once into PostgreSQL: DATABASE_URL=postgres://… KAFKA_GROUP=mine python into_postgres.py

The rows and the place behind them in their partition are stored in one transaction: both are there,
or neither. The database says where to go on; Kafka keeps no offsets. What goes wrong ends it;
started again, it goes on.
"""

import os
import signal
import sys
from itertools import groupby

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException

TOPICS = [
    os.environ.get("KAFKA_AGENTS_TOPIC", "turnlog.agents.v1"),
    os.environ.get("KAFKA_SESSIONS_TOPIC", "turnlog.sessions.v1"),
]
BATCH = 500
ERASED = ("turnlog.agent.erased.v1", "turnlog.session.erased.v1")
OF_PARTITION = 'WHERE topic = %s AND "partition" = %s'

database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
# json, because jsonb refuses the escape of the character 0, which a text may have.
database.execute(
    """CREATE TABLE IF NOT EXISTS turnlog_events (
         place bigserial, id uuid PRIMARY KEY, key text NOT NULL, revision bigint NOT NULL,
         type text NOT NULL, data json NOT NULL)"""
)
database.execute(
    """CREATE TABLE IF NOT EXISTS turnlog_places (
         topic text, "partition" int, next_offset bigint NOT NULL, PRIMARY KEY (topic, "partition"))"""
)

consumer = Consumer(
    {
        "bootstrap.servers": os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092"),
        # Consumers of one group share the partitions, and soon take over what a dead one has left.
        "group.id": os.environ.get("KAFKA_GROUP", "turnlog-example-postgres"),
        "session.timeout.ms": 6_000,
        "enable.auto.commit": False,
        # Aborted transactions stay in the topic; only what was committed counts.
        "isolation.level": "read_committed",
        # A place that the topic does not have: perhaps it was made anew. People have to look.
        "auto.offset.reset": "error",
        # How soon it sees topics that the relay makes later.
        "topic.metadata.refresh.interval.ms": 5_000,
    }
)


def go_on(consumer, partitions):
    """Reads each partition that this consumer is given from the place that the database has."""
    for it in partitions:
        select = f"SELECT next_offset FROM turnlog_places {OF_PARTITION}"
        row = database.execute(select, (it.topic, it.partition)).fetchone()
        it.offset = row[0] if row else OFFSET_BEGINNING
    consumer.assign(partitions)


def row_of(message):
    headers = {name: (value or b"").decode() for name, value in message.headers() or []}
    key, data = message.key().decode(), message.value().decode()
    return headers["ce_id"], key, int(headers["ce_streamrevision"]), headers["ce_type"], data


def store(place, messages):
    with database.transaction(), database.cursor() as cursor:
        cursor.execute("INSERT INTO turnlog_places VALUES (%s, %s, 0) ON CONFLICT DO NOTHING", place)
        # The lock holds back a consumer that has lost the partition and does not know it yet.
        cursor.execute(f"SELECT next_offset FROM turnlog_places {OF_PARTITION} FOR UPDATE", place)
        (next_offset,) = cursor.fetchone()
        new = [message for message in messages if message.offset() >= next_offset]
        if not new:
            return
        # An id that is there came from another topic: the log was replayed into this one.
        # A tombstone of a compacted topic: the event before it said that all of the key was erased.
        rows = [row_of(message) for message in new if message.value() is not None]
        for _, key, revision, type_, _ in rows:
            if type_ in ERASED:
                erase = "DELETE FROM turnlog_events WHERE key = %s AND revision < %s"
                cursor.execute(erase, (key, revision))
                rows = [row for row in rows if row[1] != key or row[2] >= revision]
        insert = """INSERT INTO turnlog_events (id, key, revision, type, data)
                    VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"""
        cursor.executemany(insert, rows)
        update = f"UPDATE turnlog_places SET next_offset = %s {OF_PARTITION}"
        cursor.execute(update, (new[-1].offset() + 1, *place))


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
consumer.subscribe(TOPICS, on_assign=go_on)
try:
    while True:
        messages = consumer.consume(BATCH, timeout=0.5)
        # A topic that the relay has not made yet is no reason to end.
        messages = [it for it in messages if it.error() != KafkaError.UNKNOWN_TOPIC_OR_PART]
        for it in messages:
            if it.error() is not None:
                raise KafkaException(it.error())
        # All events of a key are in one partition, and sorting keeps the order within each.
        place_of = lambda it: (it.topic(), it.partition())
        for place, events in groupby(sorted(messages, key=place_of), key=place_of):
            store(place, list(events))
finally:
    consumer.close()
