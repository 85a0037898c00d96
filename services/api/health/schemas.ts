import { Type, type Static } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';
import { runsHealth } from './runsHealth.ts';
import { Retention } from './retentionHealth.ts';
import { Erasures, TextKeys } from './textKeysHealth.ts';
import { ToolServers } from './toolServersHealth.ts';
import { TransparencyLog } from './transparencyHealth.ts';
import { ReplaysHealth } from './replaysHealth.ts';
import { WebhooksHealth } from './webhooksHealth.ts';

export const Live = Type.Object(
  { status: Type.Literal('live') },
  { title: 'Liveness', description: 'The process is up' },
);
export const LIVE: Static<typeof Live> = { status: 'live' };

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
