import { LIMITS } from '../../shared/limits.ts';
import {
  ALL_MEMBERS,
  MEMBER_NAME,
  MESSAGE_BYTES,
  type Broadcast,
} from '../../shared/ports/broadcast.ts';
import type { PostgresConnection } from './connection.ts';
import { listenUntilAborted } from './listener.ts';

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
  if (!MEMBER_NAME.test(name)) throw new RangeError(`${name} can't be the name of a member`);
  const closing = new AbortController();
  const listeners = new Set<{ onMessage: (message: string) => void; onMissed?: () => void }>();
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

  const listening = listenUntilAborted(databaseUrl, {
    name: 'turnlog broadcast',
    async begin(opened) {
      const { client } = opened;
      client.on('notification', ({ payload = '' }) =>
        listeners.forEach(({ onMessage }) => onMessage(payload)),
      );
      await client.query(`LISTEN ${channelOf(ALL_MEMBERS)}; LISTEN ${channelOf(name)}`);
      connection = opened;
      listeners.forEach(({ onMissed }) => onMissed?.());
    },
    beat: (client) => client.query('SELECT'),
    onEnd() {
      connection = undefined;
      outbox.length = 0;
    },
    signal: closing.signal,
  });

  return {
    name,
    send(to, text) {
      if (Buffer.byteLength(text) > MESSAGE_BYTES) throw new RangeError('too long a message');
      if (!MEMBER_NAME.test(to) || !connection || outbox.length >= LIMITS.stream.messages)
        return false;
      outbox.push({ channel: channelOf(to), text });
      void flushOutbox();
      return true;
    },
    listen(onMessage, onMissed) {
      const listener = { onMessage, ...(onMissed && { onMissed }) };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    connected: () => connection !== undefined,
    async close() {
      closing.abort();
      await listening;
    },
  };
}
