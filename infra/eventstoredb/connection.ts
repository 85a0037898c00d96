import eventstore, { type EventStoreDBClient } from '@eventstore/db-client';
import { storeUnavailable, TurnlogError } from '../../shared/errors.ts';
import { closeChannel } from './clientInternals.ts';

/** One client of the server. */
export interface Connection {
  client: EventStoreDBClient;
  /** Aborted when the connection is given up. */
  lost: AbortSignal;
  /** To be called with everything that comes from the server. */
  heard(): void;
  /** For how long nothing has come, in milliseconds. */
  silentMs(): number;
}

export interface Connections {
  /** The connection to use now. Errors: `store_unavailable` once closed. */
  current(): Connection;
  /** Gives up a connection on which nothing is heard any more; the next call gets another one. */
  replace(silent: Connection): void;
  /** Aborted when the store is closed. */
  closed: AbortSignal;
  /** Whether calls are to be answered by the leader: yes, unless the connection string prefers other nodes. */
  requiresLeader: boolean;
  close(): Promise<void>;
}

interface Live extends Connection {
  giveUp: AbortController;
}

async function letGo({ client, giveUp }: Live): Promise<void> {
  giveUp.abort(storeUnavailable('The connection to the event store was given up.'));
  await client.dispose();
  closeChannel(client);
}

/**
 * Keeps one client. It reconnects by itself after an error, follows the leader and finds the nodes of a cluster; what it
 * can't do is notice that nobody answers, which is what `replace` is for.
 * Errors: `invalid_request` when the text is not a connection string.
 */
export function createConnections(connectionString: string): Connections {
  const closed = new AbortController();
  let live: Live | undefined = connect();

  function connect(): Live {
    const giveUp = new AbortController();
    let lastHeard = performance.now();
    const heard = (): void => {
      lastHeard = performance.now();
    };
    try {
      const client = eventstore.EventStoreDBClient.connectionString(connectionString);
      return { client, lost: giveUp.signal, giveUp, heard, silentMs: () => performance.now() - lastHeard };
    } catch {
      // The client's own message quotes the text, password included.
      throw new TurnlogError('invalid_request', 'The URL of the event store is not a connection string of EventStoreDB (esdb://host:2113?tls=false).');
    }
  }

  return {
    current() {
      if (!live) throw storeUnavailable('The event store is closed.');
      return live;
    },
    replace(silent) {
      if (live === undefined || silent !== live) return;
      void letGo(live);
      live = connect();
    },
    closed: closed.signal,
    requiresLeader: !/[?&]node_?-?preference=(?!leader)/i.test(connectionString),
    async close() {
      const last = live;
      live = undefined;
      closed.abort(storeUnavailable('The event store is closed.'));
      if (last) await letGo(last);
    },
  };
}
