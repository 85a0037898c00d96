import { Type, type Static } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';

export const Live = Type.Object(
  { status: Type.Literal('live') },
  { title: 'Liveness', description: 'The process is up' },
);
export const LIVE: Static<typeof Live> = { status: 'live' };

const countOrNull = (description: string) =>
  Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description });

const runsHealth = {
  runs_in_flight: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Where the process serves the API' }),
  ),
  runs_waiting: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Runs that wait for a place, or for another run of their session; likewise',
    }),
  ),
  open_circuits: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Model providers that are not asked now, since their last calls failed',
    }),
  ),
};

const Retention = Type.Object(
  {
    state: Type.Enum(['waiting', 'sweeping', 'standing_by', 'refusing', 'failing'], {
      description:
        '`waiting` for the next sweep; `standing_by` while another process sweeps; `refusing` while the clock is not believed; `failing` after a sweep that could not end',
    }),
    due: countOrNull(
      'Sessions past their maximum that its last sweep left; null before its first one, and while another process sweeps',
    ),
    held: countOrNull(
      'Those of them whose account is held; null before its first one, and while another process sweeps',
    ),
    failed: countOrNull(
      'Those of them that could not be erased; null before its first one, and while another process sweeps',
    ),
    erased: Type.Integer({ minimum: 0, description: 'By this process, since its start' }),
    reason: Type.Optional(
      Type.String({ description: 'Why it refuses or fails, or why the last one failed' }),
    ),
  },
  {
    title: 'RetentionHealth',
    description:
      'Erasing sessions past the maximum of their account’s retention, where an account has one',
  },
);

const TextKeys = Type.Object(
  { reason: Type.String({ description: 'Why, and what to do' }) },
  {
    title: 'TextKeysHealth',
    description: 'Present while keys of texts that were erased may be back',
  },
);

const Erasures = Type.Object(
  {
    count: Type.Integer({ minimum: 1, description: 'How many this process has tried in vain' }),
    reason: Type.String({ description: 'The stream of the first one, and why' }),
  },
  {
    title: 'ErasuresHealth',
    description: 'Present while erasures that were begun can’t be finished; they are tried again',
  },
);

const ToolServers = Type.Array(
  Type.Object(
    {
      name: Type.String(),
      state: Type.Enum(['starting', 'up', 'away'], {
        description: '`away`: its calls fail, and it is tried again',
      }),
      tools: Type.Integer({ minimum: 0, description: 'Those that are offered of it' }),
      reason: Type.Optional(Type.String({ description: 'Why it is away' })),
    },
    { title: 'ToolServerHealth', description: 'A server whose tools agents may use' },
  ),
  { description: 'Absent without any' },
);

const TransparencyLog = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process grows it, or none can',
    }),
    size: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'Events under the newest checkpoint; null while another process knows it, or nobody yet',
    }),
    lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'For how long there have been events that no checkpoint covers; likewise',
    }),
    signed_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When the newest checkpoint was signed, if this process has',
    }),
    trouble: Type.Optional(
      Type.String({ description: 'Why it is not carried on; absent while it is' }),
    ),
    witnesses: Type.Optional(
      Type.Object(
        {
          wanted: Type.Integer({
            minimum: 1,
            description: 'How many cosignatures a checkpoint is to have',
          }),
          reached: Type.Integer({
            minimum: 0,
            description: 'How many the one has that is served',
          }),
          missing: Type.Array(Type.String(), {
            description: 'The names of the witnesses that have not cosigned it',
          }),
          reason: Type.Optional(
            Type.String({
              description:
                'Why there have been too few for a minute; absent while there are enough',
            }),
          ),
        },
        {
          title: 'WitnessesHealth',
          description: 'Who cosigns the checkpoints; absent where nobody is asked to',
        },
      ),
    ),
  },
  {
    title: 'TransparencyLogHealth',
    description: 'Growing the transparency log, where the process does',
  },
);

const ReplaysHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process runs replays, or none can',
    }),
    running: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'Replays that run, of all accounts; null while another process runs them',
    }),
    reason: Type.Optional(Type.String({ description: 'Why none can be run, or one of them not' })),
  },
  { title: 'ReplaysHealth', description: 'Running replays' },
);

const WebhooksHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process sends, or none can',
    }),
    enabled: countOrNull(
      'Webhooks that events are sent to, of all accounts; null while another process sends',
    ),
    failing: countOrNull(
      'Those of them whose receivers fail, which is for their accounts to mend; null while another process sends',
    ),
    reason: Type.Optional(
      Type.String({ description: 'Why nothing can be sent, or of some of them not' }),
    ),
  },
  { title: 'WebhooksHealth', description: 'Sending events to webhooks' },
);

const SearchReason = Type.Optional(
  Type.String({
    description: 'Why turns are not found by their words, or searches fail; absent while they are',
  }),
);

const Revision = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
  description: 'The first or last revision found; null when none was',
});

export const Ready = Type.Object(
  {
    status: Type.Enum(['ready', 'degraded'], {
      description:
        '`degraded` while a stream is parked or damaged, the read models are being built anew or don’t follow the log, the relay can’t publish or has parked a key, a tool server is away, the transparency log is not carried on, too few witnesses cosign it, a model provider fails, keys of erased texts may be back, erasures can’t be finished, sessions past their retention can’t be erased, nothing can be sent to webhooks, or a replay can’t be run; ' +
        'everything else is served',
    }),
    projection: Type.Optional(
      Type.Object(
        {
          caught_up: Type.Boolean({
            description: 'Whether they follow the log; false once they have not for 5 s',
          }),
          lag_events: Type.Optional(
            Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
              description:
                'The events that the active projector has read and has still to apply; null where it has still to read them, ' +
                'and where none is active. With PostgreSQL',
            }),
          ),
          lag_ms: Type.Optional(
            Type.Integer({
              minimum: 0,
              description:
                'The age of the oldest event that is still to be applied, as the active projector told it within the last second, ' +
                'by the clock of whoever wrote it; where none is active, at least the time since one was. In one process: for how long nothing could be applied, absent while it can',
            }),
          ),
          reason: Type.Optional(
            Type.String({
              description:
                'Why they are being built anew, or don’t follow the log; answers may lack what was written last until they do',
            }),
          ),
          unindexed_turns: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: LIMITS.search.countedTurns,
              description: `Turns that have ended and are not found by their words yet, absent without any; ${LIMITS.search.countedTurns} may be more`,
            }),
          ),
          search_reason: SearchReason,
          erases_words: Type.Optional(
            Type.Literal(true, {
              description:
                'Words of erased turns, which no search finds any more, are still to be taken out of the files of the index; absent otherwise',
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
              description: 'How many there are, where not all are listed',
            }),
          ),
        },
        {
          title: 'ProjectionHealth',
          description: 'The read models, where the process works with them',
        },
      ),
    ),
    ...runsHealth,
    tool_servers: Type.Optional(ToolServers),
    damaged_streams: Type.Optional(
      Type.Array(
        Type.Object(
          { stream: Type.String(), first_revision: Revision, last_revision: Revision },
          { title: 'DamagedStream', description: 'A stream that is not whole' },
        ),
        {
          description:
            'Streams that this process found damaged, until it reads them whole again, the last hundred; absent without any',
        },
      ),
    ),
    damaged_count: Type.Optional(
      Type.Integer({ minimum: 1, description: 'How many there are, where not all are listed' }),
    ),
    projector: Type.Optional(
      Type.Object(
        {
          state: Type.Enum(['standing_by', 'active'], {
            description: '`standing_by` while another projector is the active one',
          }),
          lag_events: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
            description:
              'The events that it has read and has still to apply; null where it has still to read them, ' +
              'and while another projector is active, which knows it',
          }),
          lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
            description: 'The age of the oldest event that it has still to apply',
          }),
          search_reason: SearchReason,
        },
        {
          title: 'ProjectorHealth',
          description: 'Projecting into PostgreSQL, where the process does',
        },
      ),
    ),
    relay: Type.Optional(
      Type.Object(
        {
          state: Type.Enum(['starting', 'relaying', 'standing_by', 'retrying'], {
            description:
              '`standing_by` while another relay publishes; `retrying` after a failure, until it has got on',
          }),
          position: Type.Optional(
            Type.String({ description: 'Everything up to here is published' }),
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
        { title: 'RelayHealth', description: 'Publishing to Kafka, where that is configured' },
      ),
    ),
    transparency_log: Type.Optional(TransparencyLog),
    text_keys: Type.Optional(TextKeys),
    erasures: Type.Optional(Erasures),
    webhooks: Type.Optional(WebhooksHealth),
    replays: Type.Optional(ReplaysHealth),
    retention: Type.Optional(Retention),
  },
  { title: 'Readiness', description: 'What a process that is ready tells about itself' },
);
