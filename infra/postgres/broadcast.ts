import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../shared/limits.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import { ALL, MEMBER, MESSAGE_BYTES, type Broadcast } from '../../shared/ports/broadcast.ts';
import { connectPostgres, type PostgresConnection } from './connection.ts';

const STATEMENT_MS = 2_000;
/**
 * The interval of the queries that detect a dead connection, which would deliver no more
 * notifications.
 */
const HEARTBEAT_MS = 2_000;
const PAUSES = { firstMs: 50, longestMs: 2_000, spread: [0.5, 1] } as const;
/** The most messages in one statement. */
const BATCH_SIZE = 64;

const SEND =
  'SELECT pg_notify(channel, message) FROM unnest($1::text[], $2::text[]) AS sent (channel, message)';

const channelOf = (member: string): string => `turnlog_to_${member.replaceAll('-', '_')}`;

interface Message {
  channel: string;
  text: string;
}

/**
 * Broadcasts over NOTIFY on a dedicated connection. Opens without waiting for the server. While the
 * server can't be reached, no message is sent or received.
 */
export function openPostgresBroadcast(databaseUrl: string, name: string): Broadcast {
  if (!MEMBER.test(name)) throw new RangeError(`${name} can't be the name of a member`);
  const closing = new AbortController();
  const listeners = new Set<{ hear: (message: string) => void; missed?: () => void }>();
  const outbox: Message[] = [];
  let connection: PostgresConnection | undefined;
  let sending = false;

  const takeBatch = (): Message[] => outbox.splice(0, BATCH_SIZE);

  /** Sends the queued messages in batches, one statement at a time. */
  async function flushOutbox(): Promise<void> {
    if (sending) return;
    sending = true;
    try {
      for (let messages = takeBatch(); messages.length > 0; messages = takeBatch()) {
        const channels = messages.map(({ channel }) => channel);
        await connection?.client.query(SEND, [channels, messages.map(({ text }) => text)]);
      }
    } catch {
      // Delivery is best effort: receivers find missed changes by other means.
      outbox.length = 0;
    } finally {
      sending = false;
    }
  }

  /** Listens on one connection until it breaks or the broadcast is closed. Throws pg's errors. */
  async function follow(onConnected: () => void): Promise<void> {
    const opened = await connectPostgres(databaseUrl, {
      name: 'turnlog broadcast',
      statementMs: STATEMENT_MS,
    });
    const { client, ended, close } = opened;
    try {
      client.on('notification', ({ payload = '' }) =>
        listeners.forEach(({ hear }) => hear(payload)),
      );
      await client.query(`LISTEN ${channelOf(ALL)}; LISTEN ${channelOf(name)}`);
      connection = opened;
      onConnected();
      listeners.forEach(({ missed }) => missed?.());
      const stopped = AbortSignal.any([ended, closing.signal]);
      while (!stopped.aborted) {
        await sleepUntilAborted(HEARTBEAT_MS, { signal: stopped, ref: false });
        if (!stopped.aborted) await client.query('SELECT');
      }
    } finally {
      connection = undefined;
      outbox.length = 0;
      await close();
    }
  }

  async function followUntilClosed(): Promise<void> {
    const { signal } = closing;
    const pauses = createBackoff(PAUSES);
    while (!signal.aborted) {
      await follow(pauses.reset).catch(() => undefined);
      if (!signal.aborted) await sleepUntilAborted(pauses.next(), { signal, ref: false });
    }
  }

  const following = followUntilClosed();

  return {
    name,
    send(to, text) {
      if (Buffer.byteLength(text) > MESSAGE_BYTES) throw new RangeError('too long a message');
      if (!MEMBER.test(to) || !connection || outbox.length >= LIMITS.stream.messages) return false;
      outbox.push({ channel: channelOf(to), text });
      void flushOutbox();
      return true;
    },
    listen(hear, missed) {
      const listener = { hear, ...(missed && { missed }) };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    connected: () => connection !== undefined,
    async close() {
      closing.abort();
      await following;
    },
  };
}
