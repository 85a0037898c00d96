import { Gauge, type Registry } from 'prom-client';
import type { Health } from '../../shared/health/health.ts';

/** The followers of the log and their lag in milliseconds; null or absent where it is unknown. */
const lagsOf = ({ projection, projector, relay, transparency_log }: Health) => ({
  read_models: projection?.lag?.ms ?? (projection?.caught_up ? 0 : undefined),
  projector: projector?.lag_ms,
  relay: relay?.lag_ms,
  transparency_log: transparency_log?.lag_ms,
});

/** Figures of the health without labels, by the name of their metric. */
const FIGURES: Readonly<
  Record<string, { help: string; read: (health: Health) => number | null | undefined }>
> = {
  ready: { help: '1 when requests can be served', read: ({ ready }) => Number(ready) },
  runs_in_flight: { help: 'Runs that have a slot', read: (health) => health.runs_in_flight },
  runs_waiting: { help: 'Runs that wait for a slot', read: (health) => health.runs_waiting },
  unindexed_turns: {
    help: 'Ended turns that search does not find yet',
    read: ({ projection }) => projection && (projection.unindexed_turns ?? 0),
  },
  parked_streams: {
    help: 'Streams that a projection could not follow',
    read: ({ projection }) => projection?.parked_streams.count,
  },
  damaged_streams: {
    help: 'Damaged streams that this process found',
    read: ({ damaged_count }) => damaged_count ?? 0,
  },
  damaged_rows: {
    help: 'Rows of the read models that differ from the log',
    read: ({ damaged_rows }) => damaged_rows?.count ?? 0,
  },
  open_circuits: {
    help: 'Model providers that are not called because their calls failed',
    read: ({ open_circuits }) => open_circuits?.length ?? 0,
  },
  unfinished_erasures: {
    help: 'Erasures that can not be completed',
    read: ({ erasures }) => erasures?.count ?? 0,
  },
  disk_low: {
    help: '1 while little disk space is free',
    read: ({ disk }) => Number(disk !== undefined),
  },
  disk_full: {
    help: '1 while appends of clients are refused for want of disk space',
    read: ({ disk }) => Number(disk?.state === 'full'),
  },
  retention_due_sessions: {
    help: 'Sessions past their retention that the last sweep left',
    read: ({ retention }) => retention?.due,
  },
  webhooks_enabled: { help: 'Enabled webhooks', read: ({ webhooks }) => webhooks?.enabled },
  webhooks_failing: {
    help: 'Enabled webhooks whose receivers fail',
    read: ({ webhooks }) => webhooks?.failing,
  },
  replays_running: { help: 'Running replays', read: ({ replays }) => replays?.running },
};

/**
 * Metrics of the health of a process. The returned function brings them up to date; figures that the
 * process does not know are left out.
 */
export function createHealthGauges(registers: Registry[]): (health: Health | undefined) => void {
  const figures = Object.entries(FIGURES).map(([name, { help, read }]) => ({
    gauge: new Gauge({ name: `turnlog_${name}`, help, registers }),
    read,
  }));
  const lag = new Gauge({
    name: 'turnlog_follower_lag_seconds',
    help: 'Age of the oldest event that a follower of the log has not processed',
    labelNames: ['follower'],
    registers,
  });
  const toolServers = new Gauge({
    name: 'turnlog_tool_server_up',
    help: '1 while a configured tool server can be called',
    labelNames: ['server'],
    registers,
  });
  return (health = { ready: false }) => {
    lag.reset();
    for (const [follower, ms] of Object.entries(lagsOf(health)))
      if (typeof ms === 'number') lag.set({ follower }, ms / 1_000);
    toolServers.reset();
    for (const { name, state } of health.tool_servers ?? [])
      toolServers.set({ server: name }, Number(state === 'up'));
    for (const { gauge, read } of figures) {
      const value = read(health);
      gauge.remove();
      if (typeof value === 'number') gauge.set(value);
    }
  };
}
