/** The members of `GET /health/ready` that are shown. Their meaning is in the API's document. */
export interface HealthReport {
  projection?: {
    caught_up: boolean;
    lag_events?: number | null;
    lag_ms?: number;
    reason?: string;
    unindexed_turns?: number;
    search_reason?: string;
    erases_words?: boolean;
    parked_streams: { stream: string; revision: number; event_type: string }[];
    parked_count?: number;
  };
  runs_in_flight?: number;
  runs_waiting?: number;
  open_circuits?: string[];
  tool_servers?: {
    name: string;
    state: string;
    tools: number;
    reason?: string;
    problems?: string[];
  }[];
  damaged_streams?: {
    stream: string;
    first_revision: number | null;
    last_revision: number | null;
  }[];
  damaged_count?: number;
  damaged_rows?: { count: number; reason: string };
  projector?: Follower & { lag_events: number | null; search_reason?: string };
  relay?: Follower & { reason?: string; parked?: { count: number } };
  transparency_log?: Follower & {
    size: number | null;
    trouble?: string;
    doubt?: string;
    witnesses?: { wanted: number; reached: number; reason?: string };
  };
  text_keys?: { reason: string };
  erasures?: { count: number; reason: string };
  webhooks?: Service & { enabled: number | null; failing: number | null };
  replays?: Service & { running: number | null };
  retention?: Service & {
    due: number | null;
    held: number | null;
    failed: number | null;
    erased: number;
  };
  disk?: { state: string; folders: { folder: string; free_bytes: number }[] };
}

interface Follower {
  state: string;
  lag_ms: number | null;
}

interface Service {
  state: string;
  reason?: string;
}

/** A part of the service, as the person sees it. */
export interface Part {
  name: string;
  tone: 'success' | 'neutral' | 'warning' | 'destructive';
  status: string;
  /** How far it is behind, in milliseconds; undefined for a part that follows nothing. */
  lagMs?: number | undefined;
  detail: string;
  /** What is wrong, and what to do first. */
  problems: { what: string; first: string }[];
}

type Problem = Part['problems'][number];

const WORDS: Readonly<Record<string, string>> = {
  standing_by: 'Standing by',
  active: 'Working',
  relaying: 'Publishing',
  retrying: 'Retrying',
  starting: 'Starting',
  up: 'Up',
  away: 'Away',
  waiting: 'Waiting',
  sweeping: 'Erasing',
  refusing: 'Refusing',
  failing: 'Failing',
  low: 'Low',
  full: 'Full',
};

const wordOf = (state: string): string => WORDS[state] ?? state;

const counted = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

const joined = (...parts: (string | false | undefined)[]): string =>
  parts.filter((part) => typeof part === 'string' && part !== '').join(' · ');

function part(
  name: string,
  status: string,
  options: {
    problems?: (Problem | false | undefined)[];
    detail?: string;
    lagMs?: number | null | undefined;
    tone?: Part['tone'];
  },
): Part {
  const problems = (options.problems ?? []).filter((each): each is Problem => Boolean(each));
  const tone = problems.length > 0 ? 'warning' : status === 'Standing by' ? 'neutral' : 'success';
  return {
    name,
    status,
    tone: options.tone ?? tone,
    problems,
    detail: options.detail ?? '',
    lagMs: options.lagMs ?? undefined,
  };
}

/** A problem whose reason the service gives; undefined without one. */
const problem = (what: string | undefined, first: string): Problem | undefined =>
  what === undefined ? undefined : { what, first };

const SEARCH_FIRST =
  'Follow the reason. If the index is damaged: npm run cli -- projections rebuild.';

function readModels({ projection }: HealthReport): Part[] {
  if (!projection) return [];
  const { caught_up, parked_streams, reason, unindexed_turns = 0 } = projection;
  const parked = projection.parked_count ?? parked_streams.length;
  return [
    part('Read models', caught_up ? 'Up to date' : 'Behind', {
      lagMs: projection.lag_ms ?? (caught_up ? 0 : undefined),
      detail: joined(
        Boolean(projection.lag_events) && counted(projection.lag_events!, 'event') + ' to apply',
        unindexed_turns > 0 && counted(unindexed_turns, 'turn') + ' to index for search',
        projection.erases_words && 'words of erased turns are being removed',
      ),
      problems: [
        problem(
          reason ?? (caught_up ? undefined : 'The read models do not follow the log.'),
          'Wait a minute: lists may lack recent changes until then. If this lasts, look at the log of the projector, and for another process that locks the read models.',
        ),
        problem(projection.search_reason, SEARCH_FIRST),
        parked > 0 && {
          what: `${counted(parked, 'stream is', 'streams are')} parked: an event could not be applied to the read models. ${listed(parked_streams.map(({ stream, revision }) => `${stream} from revision ${revision}`))}`,
          first:
            'Find the reason in the log, repair it (a damaged stream, an event of a newer release), then run: npm run cli -- projections rebuild.',
        },
      ],
    }),
  ];
}

const LISTED = 5;
const listed = (names: readonly string[]): string =>
  names.slice(0, LISTED).join(', ') + (names.length > LISTED ? ', …' : '.');

function projector({ projector: it }: HealthReport): Part[] {
  if (!it) return [];
  return [
    part('Projector', wordOf(it.state), {
      lagMs: it.lag_ms,
      detail: joined(Boolean(it.lag_events) && counted(it.lag_events!, 'event') + ' to apply'),
      problems: [problem(it.search_reason, SEARCH_FIRST)],
    }),
  ];
}

function relay({ relay: it }: HealthReport): Part[] {
  if (!it) return [];
  return [
    part('Kafka relay', wordOf(it.state), {
      lagMs: it.lag_ms,
      problems: [
        (it.state === 'retrying' || it.reason !== undefined) && {
          what: it.reason ?? 'It can’t publish.',
          first: 'Check that Kafka runs, and that the relay’s topics and rights are there.',
        },
        it.parked && {
          what: `${counted(it.parked.count, 'key is', 'keys are')} parked, because an event was larger than its topic takes.`,
          first:
            'Raise the topic’s max.message.bytes, then publish again: npm run cli -- relay replay.',
        },
      ],
    }),
  ];
}

function transparencyLog({ transparency_log: it }: HealthReport): Part[] {
  if (!it) return [];
  const { witnesses } = it;
  return [
    part('Transparency log', wordOf(it.state), {
      lagMs: it.lag_ms,
      detail: joined(
        it.size !== null && counted(it.size, 'event') + ' signed',
        witnesses &&
          `${witnesses.reached} of ${counted(witnesses.wanted, 'wanted witness', 'wanted witnesses')}`,
      ),
      problems: [
        problem(
          it.trouble,
          'Restore its files or its key from a backup, then restart the service.',
        ),
        problem(
          it.doubt,
          'Compare it with a checkpoint that was kept elsewhere, in the audit view.',
        ),
        problem(
          witnesses?.reason,
          'Check that the witnesses can be reached and know this log’s name and key.',
        ),
      ],
    }),
  ];
}

const service = (name: string, it: Service | undefined, detail: string, first: string): Part[] =>
  it ? [part(name, wordOf(it.state), { detail, problems: [problem(it.reason, first)] })] : [];

function followers({ webhooks, replays, retention }: HealthReport): Part[] {
  const number = (value: number | null | undefined, what: string): string | false =>
    typeof value === 'number' && `${value.toLocaleString('en')} ${what}`;
  return [
    ...service(
      'Webhooks',
      webhooks,
      joined(
        number(webhooks?.enabled, 'enabled'),
        number(webhooks?.failing, 'with failing receivers'),
      ),
      'Follow the reason. Messages are kept and sent later.',
    ),
    ...service(
      'Replays',
      replays,
      joined(number(replays?.running, 'running')),
      'Follow the reason. The replay continues by itself.',
    ),
    ...service(
      'Retention',
      retention,
      joined(
        number(retention?.due, 'sessions due'),
        number(retention?.held, 'on hold'),
        number(retention?.failed, 'failed'),
        number(retention?.erased, 'erased since the start'),
      ),
      'Check the clock of the machine. If it is right: npm run cli -- retention --help.',
    ),
  ];
}

function toolServers({ tool_servers = [] }: HealthReport): Part[] {
  return tool_servers.map(({ name, state, tools, reason, problems = [] }) =>
    part(`Tools: ${name}`, wordOf(state), {
      detail: joined(counted(tools, 'tool'), ...problems),
      problems: [
        state === 'away' && {
          what: reason ?? 'The tool server is away.',
          first:
            'Run its command by hand, or check its address, and correct the tools file. It is retried.',
        },
      ],
    }),
  );
}

/** Parts that health names only while something is wrong with them. */
function faults(health: HealthReport): Part[] {
  const {
    damaged_streams = [],
    damaged_rows,
    text_keys,
    erasures,
    disk,
    open_circuits = [],
  } = health;
  const damaged = health.damaged_count ?? damaged_streams.length;
  const fault = (name: string, status: string, what: string, first: string): Part =>
    part(name, status, { tone: 'destructive', problems: [{ what, first }] });
  return [
    ...open_circuits.map((name) =>
      part(`Model provider: ${name}`, 'Not called', {
        problems: [
          {
            what: `The last calls of ${name} failed, so it is not called for now.`,
            first:
              'Check the provider’s status, its key and its quota. It is tried again by itself.',
          },
        ],
      }),
    ),
    ...(damaged > 0
      ? [
          fault(
            'Event streams',
            'Damaged',
            `${counted(damaged, 'stream is', 'streams are')} damaged: ${listed(
              damaged_streams.map(({ stream }) => stream),
            )}`,
            'Keep a copy for the investigation, then run: npm run cli -- audit verify.',
          ),
        ]
      : []),
    ...(damaged_rows
      ? [
          fault(
            'Rows of the read models',
            'Changed',
            damaged_rows.reason,
            'Check who may write to the read models, then run: npm run cli -- projections rebuild.',
          ),
        ]
      : []),
    ...(text_keys
      ? [
          fault(
            'Keys of texts',
            'In doubt',
            text_keys.reason,
            'Run: npm run cli -- text-keys reconcile.',
          ),
        ]
      : []),
    ...(erasures
      ? [
          fault(
            'Erasures',
            'Unfinished',
            `${counted(erasures.count, 'erasure')} can’t be completed: ${erasures.reason}`,
            'Check that the key store can be written. Erasures are retried.',
          ),
        ]
      : []),
    ...(disk
      ? [
          part('Disk', wordOf(disk.state), {
            tone: disk.state === 'full' ? 'destructive' : 'warning',
            problems: disk.folders.map(({ folder, free_bytes }) => ({
              what: `${folder} has ${Math.floor(free_bytes / 2 ** 20).toLocaleString('en')} MiB free.`,
              first:
                disk.state === 'full'
                  ? 'Nothing new is recorded until you free space or enlarge the file system.'
                  : 'Free space or enlarge the file system.',
            })),
          }),
        ]
      : []),
  ];
}

/** All parts of a process that is ready, in an order that does not change. */
export function partsOf(health: HealthReport): Part[] {
  const { runs_in_flight: running, runs_waiting: waiting = 0 } = health;
  return [
    ...(running === undefined
      ? []
      : [part('Runs', 'Working', { detail: `${running} running · ${waiting} waiting` })]),
    ...readModels(health),
    ...projector(health),
    ...relay(health),
    ...transparencyLog(health),
    ...followers(health),
    ...toolServers(health),
    ...faults(health),
  ];
}
