/** The body of `GET /health/ready`. Its members are read by their paths, such as `relay.reason`. */
export type HealthReport = Readonly<Record<string, unknown>>;

const at = (health: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], health);

const numberAt = (health: unknown, path: string): number | undefined => {
  const value = at(health, path);
  return typeof value === 'number' ? value : undefined;
};

const listAt = (health: unknown, path: string): Record<string, unknown>[] =>
  (at(health, path) as Record<string, unknown>[] | undefined) ?? [];

/** The parts, the member of each, and the figures of it that are shown. */
const PARTS: [name: string, member: string, figures: Record<string, string>][] = [
  [
    'Read models',
    'projection',
    { lag_events: 'events to apply', unindexed_turns: 'turns to index' },
  ],
  ['Projector', 'projector', { lag_events: 'events to apply' }],
  ['Kafka relay', 'relay', {}],
  [
    'Transparency log',
    'transparency_log',
    { size: 'events signed', 'witnesses.reached': 'cosignatures', 'witnesses.wanted': 'wanted' },
  ],
  ['Webhooks', 'webhooks', { enabled: 'enabled', failing: 'with failing receivers' }],
  ['Replays', 'replays', { running: 'running' }],
  ['Retention', 'retention', { due: 'due', held: 'on hold', failed: 'failed', erased: 'erased' }],
];

const INDEX = 'Follow the reason. If the index is damaged: npm run cli -- projections rebuild.';
const REBUILD = 'npm run cli -- projections rebuild.';

/** The parts, where health has the reason of a problem, and what to do first. */
const REASONS: [name: string, path: string, first: string][] = [
  [
    'Read models',
    'projection.reason',
    'Wait a minute: lists may lack recent changes until then. If this lasts, look at the log of the projector, and for another process that locks the read models.',
  ],
  ['Search', 'projection.search_reason', INDEX],
  ['Search', 'projector.search_reason', INDEX],
  ['Kafka relay', 'relay.reason', 'Check that Kafka runs, and its topics and rights.'],
  [
    'Transparency log',
    'transparency_log.trouble',
    'Restore its files or its key from a backup, then restart the service.',
  ],
  ['Transparency log', 'transparency_log.doubt', 'Compare a kept checkpoint in the audit view.'],
  [
    'Witnesses',
    'transparency_log.witnesses.reason',
    'Check that they can be reached, and know this log’s name and key.',
  ],
  ['Webhooks', 'webhooks.reason', 'Follow the reason. Messages are kept and sent later.'],
  ['Replays', 'replays.reason', 'Follow the reason. The replay continues by itself.'],
  ['Retention', 'retention.reason', 'Check the clock of the machine.'],
  [
    'Changed rows',
    'damaged_rows.reason',
    `Check who may write to the read models, then: ${REBUILD}`,
  ],
  ['Keys of texts', 'text_keys.reason', 'Run: npm run cli -- text-keys reconcile.'],
  ['Erasures', 'erasures.reason', 'Check that the key store can be written. They are retried.'],
];

/** The parts of a ready process, in a fixed order; a part that follows nothing has no `lagMs`. */
export function partsOf(health: HealthReport) {
  const parts = PARTS.filter(([, member]) => health[member]).map(([name, member, figures]) => {
    const state = at(health, `${member}.state`);
    const isBehind = at(health, `${member}.caught_up`) === false;
    const lagMs = numberAt(health, `${member}.lag_ms`);
    const shown = Object.entries(figures).flatMap(([path, what]) => {
      const value = numberAt(health, `${member}.${path}`);
      return value === undefined ? [] : [`${value.toLocaleString('en')} ${what}`];
    });
    const status = typeof state === 'string' ? state : isBehind ? 'behind' : 'up to date';
    return { name, status: status.replace('_', ' '), lagMs, detail: shown.join(' · ') };
  });
  const runs = numberAt(health, 'runs_in_flight');
  const waiting = `${numberAt(health, 'runs_waiting') ?? 0} waiting`;
  const none = { lagMs: undefined };
  const servers = listAt(health, 'tool_servers').map(({ name, state, tools, problems }) => ({
    name: `Tools: ${String(name)}`,
    status: String(state),
    detail: [`${String(tools)} tools`, ...((problems as string[] | undefined) ?? [])].join(' · '),
    ...none,
  }));
  const first = { name: 'Runs', status: 'active', detail: `${runs} running · ${waiting}`, ...none };
  return [...(runs === undefined ? [] : [first]), ...parts, ...servers];
}

/** A problem of a part, and the first remedy. Empty unless the report has the text of the problem. */
const problem = (name: string, what: unknown, first: string) =>
  typeof what === 'string' ? [{ name, what, first }] : [];

/** The problems of a process that is ready. */
export function problemsOf(health: HealthReport) {
  const streams = (path: string): string | undefined => {
    const names = listAt(health, path).map(({ stream }) => String(stream));
    const total = numberAt(health, path.replace('_streams', '_count')) ?? names.length;
    return total === 0 ? undefined : `${total}: ${names.slice(0, 5).join(', ')}`;
  };
  const isBehind = at(health, 'projection.caught_up') === false && !at(health, 'projection.reason');
  const behind = isBehind ? 'The read models do not follow the log.' : undefined;
  const parkedKeys = numberAt(health, 'relay.parked.count')?.toString();
  return [
    ...problem('Read models', behind, REASONS[0]![2]),
    ...REASONS.flatMap(([name, path, first]) => problem(name, at(health, path), first)),
    ...problem(
      'Parked streams',
      streams('projection.parked_streams'),
      `Find the reason in the log, repair it (a damaged stream, an event of a newer release), then: ${REBUILD}`,
    ),
    ...problem(
      'Damaged streams',
      streams('damaged_streams'),
      'Keep a copy for the investigation, then run: npm run cli -- audit verify.',
    ),
    ...problem(
      'Keys that the relay parked',
      parkedKeys,
      'Raise the topic’s max.message.bytes, then publish again: npm run cli -- relay replay.',
    ),
    ...listAt(health, 'tool_servers')
      .filter(({ state }) => state === 'away')
      .flatMap(({ name, reason = 'It is away.' }) =>
        problem(`Tools: ${String(name)}`, reason, 'Run its command by hand, or check its address.'),
      ),
    ...(listAt(health, 'open_circuits') as unknown[]).flatMap((name) =>
      problem(
        `Model provider: ${String(name)}`,
        'Its last calls failed, so it is not called for now.',
        'Check the provider’s status, its key and its quota. It is tried again by itself.',
      ),
    ),
    ...listAt(health, 'disk.folders').flatMap(({ folder, free_bytes }) =>
      problem(
        `Disk (${String(at(health, 'disk.state'))})`,
        `${String(folder)} has ${Math.floor(Number(free_bytes) / 2 ** 20)} MiB free.`,
        'Free space, or enlarge the file system.',
      ),
    ),
  ];
}
