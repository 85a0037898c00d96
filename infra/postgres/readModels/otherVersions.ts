import type { Client } from 'pg';
import { isPositionFormat } from '../../../shared/eventlog/identity/positions.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import { lockIsHeldBy } from '../leases/locks.ts';
import { channelOf, VERSION } from './schema.ts';

/** The complete versions that other releases answer from, and where their live generations are. */
const ANSWERED_FROM = `SELECT version, position FROM turnlog.projections JOIN ${lockIsHeldBy('readers')} USING (version)
  WHERE slot = 'live' AND complete AND version <> $1`;

interface Answered {
  version: number;
  position: Position | null;
}

type Waiters = ReturnType<typeof createPositionWaiters>;

/**
 * The versions of the read models that processes of other releases answer from, on the connection
 * of a follower: while a release is rolled out, a write is to be seen by every later read, whichever
 * replica answers it.
 */
export function createOtherVersions() {
  const waiters = new Map<string, Waiters>();
  /** What a version did not show in time: until it does, no other write waits for it. */
  const missed = new WeakMap<Waiters, Position>();

  function drop(channel: string): void {
    waiters.get(channel)?.close();
    waiters.delete(channel);
  }

  function show(channel: string, position: string): void {
    if (isPositionFormat(position)) waiters.get(channel)?.show(position as Position);
    else waiters.get(channel)?.reset();
  }

  async function look(client: Client): Promise<boolean> {
    const { rows } = await client.query<Answered>(ANSWERED_FROM, [VERSION.number]);
    const found = new Map(
      rows.map(({ version, position }) => [channelOf({ number: version }), position ?? '']),
    );
    for (const channel of waiters.keys()) if (!found.has(channel)) drop(channel);
    const fresh = [...found.keys()].filter((channel) => !waiters.has(channel));
    for (const channel of fresh) {
      await client.query(`LISTEN ${channel}`);
      waiters.set(channel, createPositionWaiters());
    }
    // What was told meanwhile is newer than the answer.
    for (const [channel, position] of found)
      if (position > (waiters.get(channel)?.shown() ?? '')) show(channel, position);
    return fresh.length > 0;
  }

  return {
    /** Looks which versions there are; one look at a time. Errors: what pg throws. */
    async refresh(client: Client): Promise<void> {
      // What was told between the look and LISTEN is found by a second look.
      if (await look(client)) await look(client);
    },
    /** What the server has told on the channel of a version. */
    hear: show,
    /**
     * Resolves once all of them show the position, or when that takes longer. One that is late is
     * waited for again when it shows what it was late with: a stopped process slows no more than
     * the writes at hand.
     */
    async untilShown(position: Position, timeoutMs: number): Promise<void> {
      await Promise.all(
        [...waiters.values()].map(async (version) => {
          if ((missed.get(version) ?? '') > (version.shown() ?? '')) return;
          if (!(await version.untilShown(position, timeoutMs))) missed.set(version, position);
        }),
      );
    },
    /** Nothing is known any more: nobody waits for what can't be heard. */
    forget(): void {
      for (const channel of waiters.keys()) drop(channel);
    },
  };
}
