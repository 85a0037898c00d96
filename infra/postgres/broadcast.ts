import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../shared/limits.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import { ALL, MEMBER, MESSAGE_BYTES, type Broadcast } from '../../shared/ports/broadcast.ts';
import { connectPostgres, type PostgresConnection } from './connection.ts';

const STATEMENT_MS = 2_000;
/** A connection that has died without a word would never tell anything again. */
const HEARTBEAT_MS = 2_000;
const PAUSES = { firstMs: 50, longestMs: 2_000, spread: [0.5, 1] } as const;
/** Sent in one statement. */
const BATCH_SIZE = 64;

const SEND =
  'SELECT pg_notify(channel, message) FROM unnest($1::text[], $2::text[]) AS sent (channel, message)';

const channelOf = (member: string): string => `turnlog_to_${member.replaceAll('-', '_')}`;

interface Message {
  channel: string;
  text: string;
}

/**
 * Broadcast over NOTIFY, on one connection of its own. Opens without waiting for the server; while
 * that is away, nothing is sent and nothing heard.
 */
export function openPostgresBroadcast(databaseUrl: string, name: string): Broadcast {
  if (!MEMBER.test(name)) throw new RangeError(`${name} can't be the name of a member`);
  const closing = new AbortController();
  const listeners = new Set<{ hear: (message: string) => void; missed?: () => void }>();
  const waiting: Message[] = [];
  let connection: PostgresConnection | undefined;
  let sending = false;

  const next = (): Message[] => waiting.splice(0, BATCH_SIZE);

  /** One statement after the other, each with all that waits by then. */
  async function sendWaiting(): Promise<void> {
    if (sending) return;
    sending = true;
    try {
      for (let messages = next(); messages.length > 0; messages = next()) {
        const channels = messages.map(({ channel }) => channel);
        await connection?.client.query(SEND, [channels, messages.map(({ text }) => text)]);
      }
    } catch {
      // What was lost is looked for elsewhere.
      waiting.length = 0;
    } finally {
      sending = false;
    }
  }

  /** One connection, until it breaks or the broadcast is closed. Errors: what pg throws. */
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
      const over = AbortSignal.any([ended, closing.signal]);
      while (!over.aborted) {
        await sleepUntilAborted(HEARTBEAT_MS, { signal: over, ref: false });
        if (!over.aborted) await client.query('SELECT');
      }
    } finally {
      connection = undefined;
      waiting.length = 0;
      await close();
    }
  }

  async function followForEver(): Promise<void> {
    const { signal } = closing;
    const pauses = createBackoff(PAUSES);
    while (!signal.aborted) {
      await follow(pauses.reset).catch(() => undefined);
      if (!signal.aborted) await sleepUntilAborted(pauses.next(), { signal, ref: false });
    }
  }

  const following = followForEver();

  return {
    name,
    send(to, text) {
      if (Buffer.byteLength(text) > MESSAGE_BYTES) throw new RangeError('too long a message');
      if (!MEMBER.test(to) || !connection || waiting.length >= LIMITS.stream.messages) return false;
      waiting.push({ channel: channelOf(to), text });
      void sendWaiting();
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
