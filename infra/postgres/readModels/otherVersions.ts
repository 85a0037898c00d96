import type { Client } from 'pg';
import { isPositionFormat } from '../../../shared/eventlog/identity/positions.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import { lockIsHeldBy } from '../leases/locks.ts';
import { channelOf, VERSION } from './schema.ts';

/** The complete versions that other releases answer from, with the positions of their live generations. */
const READ_VERSIONS = `SELECT version, position FROM turnlog.projections JOIN ${lockIsHeldBy('readers')} USING (version)
  WHERE slot = 'live' AND complete AND version <> $1`;

interface LiveVersion {
  version: number;
  position: Position | null;
}

type Waiters = ReturnType<typeof createPositionWaiters>;

/**
 * Follows the versions of the read models that processes of other releases answer from, on the
 * connection of a follower. During a rollout every later read must see a write, whichever replica
 * answers it.
 */
export function createOtherVersions() {
  const waiters = new Map<string, Waiters>();
  /** Positions that a version did not show in time. Until it does, no other write waits for it. */
  const missed = new WeakMap<Waiters, Position>();

  function drop(channel: string): void {
    waiters.get(channel)?.close();
    waiters.delete(channel);
  }

  function show(channel: string, position: string): void {
    if (isPositionFormat(position)) waiters.get(channel)?.show(position as Position);
    else waiters.get(channel)?.reset();
  }

  async function readVersions(client: Client): Promise<boolean> {
    const { rows } = await client.query<LiveVersion>(READ_VERSIONS, [VERSION.number]);
    const positions = new Map(
      rows.map(({ version, position }) => [channelOf({ number: version }), position ?? '']),
    );
    for (const channel of waiters.keys()) if (!positions.has(channel)) drop(channel);
    const added = [...positions.keys()].filter((channel) => !waiters.has(channel));
    for (const channel of added) {
      await client.query(`LISTEN ${channel}`);
      waiters.set(channel, createPositionWaiters());
    }
    // Notifications received during the query have newer positions.
    for (const [channel, position] of positions)
      if (position > (waiters.get(channel)?.shown() ?? '')) show(channel, position);
    return added.length > 0;
  }

  return {
    /** Updates the list of versions. Calls must not overlap. Throws pg's errors. */
    async refresh(client: Client): Promise<void> {
      // A second query finds the positions that were notified between the first one and LISTEN.
      if (await readVersions(client)) await readVersions(client);
    },
    /** Handles a notification on the channel of a version. */
    receive: show,
    /**
     * Resolves once all of them show the position, or after the timeout. A version that timed out is
     * skipped until it shows the position that it missed, so a stopped process delays only the writes
     * in progress.
     */
    async untilShown(position: Position, timeoutMs: number): Promise<void> {
      await Promise.all(
        [...waiters.values()].map(async (version) => {
          if ((missed.get(version) ?? '') > (version.shown() ?? '')) return;
          if (!(await version.untilShown(position, timeoutMs))) missed.set(version, position);
        }),
      );
    },
    /** Drops all versions: without a connection their positions are unknown. */
    forget(): void {
      for (const channel of waiters.keys()) drop(channel);
    },
  };
}
