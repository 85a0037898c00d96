import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  ReplaysHealth,
  ToolServers,
  TransparencyLog,
  WebhooksHealth,
  countOrNull,
} from './partSchemas.ts';

export const Live = Type.Object(
  { status: Type.Literal('live') },
  { title: 'Liveness', description: 'The process is up' },
);
export const LIVE: Static<typeof Live> = { status: 'live' };

const runsHealth = {
  runs_in_flight: Type.Optional(
    Type.Integer({ minimum: 0, description: 'If the process serves the API' }),
  ),
  runs_waiting: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Runs that wait for a free slot or for another run of their session; likewise',
    }),
  ),
  open_circuits: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Model providers that are not called for now because their last calls failed',
    }),
  ),
};

const Retention = Type.Object(
  {
    state: Type.Enum(['waiting', 'sweeping', 'standing_by', 'refusing', 'failing'], {
      description:
        '`waiting` for the next sweep; `standing_by` while another process sweeps; `refusing` while the clock is implausible; `failing` after a sweep that failed',
    }),
    due: countOrNull(
      'Sessions past their maximum after its last sweep; null before its first one, and while another process sweeps',
    ),
    held: countOrNull(
      'Those of them whose account is held; null before its first one, and while another process sweeps',
    ),
    failed: countOrNull(
      'Those of them that could not be erased; null before its first one, and while another process sweeps',
    ),
    erased: Type.Integer({ minimum: 0, description: 'By this process, since its start' }),
    reason: Type.Optional(
      Type.String({ description: 'Why it refuses or fails, or why the last erasure failed' }),
    ),
  },
  {
    title: 'RetentionHealth',
    description:
      'Erasing sessions past the maximum of their account’s retention, where an account has one',
  },
);

const DamagedRows = Type.Object(
  {
    count: Type.Integer({ minimum: 1, description: 'The number that this process found' }),
    rows: Type.Array(
      Type.Object(
        {
          table: Type.String(),
          key: Type.String({ description: 'The row’s key, with `/` between its parts' }),
          column: Type.String({
            description:
              'The first column that differs; `missing` for a row that was removed, `unrecorded` for one that no event made',
          }),
        },
        { title: 'DamagedRow', description: 'A row that does not say what the log says' },
      ),
      { description: 'The last hundred' },
    ),
    reason: Type.String({ description: 'The tables, and what to do' }),
  },
  {
    title: 'DamagedRowsHealth',
    description:
      'Present while rows of the read models do not say what the log says: someone else has changed them',
  },
);

const TextKeys = Type.Object(
  { reason: Type.String({ description: 'The reason, and what to do' }) },
  {
    title: 'TextKeysHealth',
    description: 'Present while keys of texts that were erased may be back',
  },
);

const Erasures = Type.Object(
  {
    count: Type.Integer({
      minimum: 1,
      description: 'The number that this process failed to complete',
    }),
    reason: Type.String({ description: 'The stream of the first one, and why' }),
  },
  {
    title: 'ErasuresHealth',
    description: 'Present while erasures can’t be completed; they are retried',
  },
);

const Disk = Type.Object(
  {
    state: Type.Enum(['low', 'full'], {
      description: '`full`: nothing new is recorded, and requests for it are 503 `storage_full`',
    }),
    folders: Type.Array(
      Type.Object(
        {
          folder: Type.String(),
          free_bytes: Type.Integer({ minimum: 0 }),
        },
        { title: 'ShortFolder', description: 'A folder whose file system has little free space' },
      ),
    ),
  },
  { title: 'DiskHealth', description: 'Present while little disk space is free' },
);

const SearchReason = Type.Optional(
  Type.String({
    description: 'Why turns are not indexed or searches fail; absent while search works',
  }),
);

const Revision = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
  description: 'The first or last revision found; null when none was',
});

export const Ready = Type.Object(
  {
    status: Type.Enum(['ready', 'degraded'], {
      description:
        '`degraded` while a stream is parked or damaged, rows were changed, turns can’t be searched, the read models are being rebuilt or don’t follow the log, the relay can’t publish or has parked a key, a tool server is away, the transparency log does not grow or was begun without a record of an earlier one, too few witnesses cosign it, a model provider fails, keys of erased texts may be back, erasures can’t be completed, sessions past their retention can’t be erased, messages to webhooks can’t be sent, a replay can’t run, or little disk space is free; ' +
        'all other requests are served',
    }),
    projection: Type.Optional(
      Type.Object(
        {
          caught_up: Type.Boolean({
            description: 'Whether they follow the log; false after 5 s without doing so',
          }),
          lag_events: Type.Optional(
            Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
              description:
                'Events that the active projector has read but not applied; null if it has events to read, ' +
                'and without an active projector. With PostgreSQL',
            }),
          ),
          lag_ms: Type.Optional(
            Type.Integer({
              minimum: 0,
              description:
                'The age of the oldest event that is not applied, as the active projector reported it within the last second, ' +
                'by the clock of its writer; without an active projector, at least the time since one was. In one process: for how long no event could be applied, absent while events can be',
            }),
          ),
          reason: Type.Optional(
            Type.String({
              description:
                'Why they are being rebuilt, or don’t follow the log; until they do, responses may lack recent changes',
            }),
          ),
          unindexed_turns: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: LIMITS.search.countedTurns,
              description: `Ended turns that are not indexed for word search yet, absent without any; ${LIMITS.search.countedTurns} may be more`,
            }),
          ),
          search_reason: SearchReason,
          erases_words: Type.Optional(
            Type.Literal(true, {
              description:
                'Texts or words of erased turns, which no query returns, remain in the files of the read models until they are removed; absent otherwise',
            }),
          ),
          parked_streams: Type.Array(
            Type.Object(
              {
                stream: Type.String(),
                revision: Type.Integer(),
                event_type: Type.String(),
              },
              { title: 'ParkedStream', description: 'A stream that a projection could not follow' },
            ),
            { description: 'The first hundred' },
          ),
          parked_count: Type.Optional(
            Type.Integer({
              minimum: 1,
              description: 'Their total, if not all are listed',
            }),
          ),
        },
        {
          title: 'ProjectionHealth',
          description: 'The read models, if the process uses them',
        },
      ),
    ),
    ...runsHealth,
    tool_servers: Type.Optional(ToolServers),
    damaged_streams: Type.Optional(
      Type.Array(
        Type.Object(
          { stream: Type.String(), first_revision: Revision, last_revision: Revision },
          { title: 'DamagedStream', description: 'A damaged stream' },
        ),
        {
          description:
            'Streams that this process found damaged, until it reads them intact, the last hundred; absent without any',
        },
      ),
    ),
    damaged_count: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Their total, if not all are listed' }),
    ),
    damaged_rows: Type.Optional(DamagedRows),
    projector: Type.Optional(
      Type.Object(
        {
          state: Type.Enum(['standing_by', 'active'], {
            description: '`standing_by` while another projector is the active one',
          }),
          lag_events: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
            description:
              'Events that it has read but not applied; null if it has events to read, ' +
              'and while another projector is active',
          }),
          lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
            description: 'The age of the oldest event that it has not applied',
          }),
          search_reason: SearchReason,
        },
        {
          title: 'ProjectorHealth',
          description: 'Projecting into PostgreSQL, if the process does',
        },
      ),
    ),
    relay: Type.Optional(
      Type.Object(
        {
          state: Type.Enum(['starting', 'relaying', 'standing_by', 'retrying'], {
            description:
              '`standing_by` while another relay publishes; `retrying` after a failure, until it makes progress',
          }),
          position: Type.Optional(
            Type.String({ description: 'All events up to this position are published' }),
          ),
          lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
            description:
              'The age of the oldest event that is not published; null while another relay publishes',
          }),
          reason: Type.Optional(
            Type.String({
              description: 'Why it can’t publish; always there while it is `retrying`',
            }),
          ),
          parked: Type.Optional(
            Type.Object(
              {
                count: Type.Integer({ minimum: 1 }),
                keys: Type.Array(
                  Type.Object(
                    {
                      topic: Type.String(),
                      key: Type.String(),
                      event_id: Type.String(),
                      position: Type.String(),
                      size: Type.Integer({
                        description: 'Of the message that was too large, in bytes',
                      }),
                    },
                    { title: 'ParkedKey', description: 'A key whose events are not published' },
                  ),
                  { description: 'The first few' },
                ),
              },
              {
                title: 'ParkedKeys',
                description:
                  'Keys whose events go to the dead-letter topic, because one was larger than its topic takes; absent without any',
              },
            ),
          ),
        },
        { title: 'RelayHealth', description: 'Publishing to Kafka, if configured' },
      ),
    ),
    transparency_log: Type.Optional(TransparencyLog),
    text_keys: Type.Optional(TextKeys),
    erasures: Type.Optional(Erasures),
    webhooks: Type.Optional(WebhooksHealth),
    replays: Type.Optional(ReplaysHealth),
    retention: Type.Optional(Retention),
    disk: Type.Optional(Disk),
  },
  { title: 'Readiness', description: 'The state of a process that is ready' },
);
