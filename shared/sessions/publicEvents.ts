import { Type } from '../domain/jsonSchema.ts';
import { INSTANT, Tokens as RecordedTokens } from '../domain/schema.ts';
import type { SessionEvent } from './events.ts';
import {
  ERASED_TEXTS,
  pick,
  publicContent,
  publicSchema,
  type PublicContentOf,
} from '../publicEvents/schema.ts';

const session_id = Type.String();
const turn = Type.Integer({ minimum: 1, description: '1-based number of the turn in its session' });
const duration_ms = Type.Integer({ minimum: 0 });

/** Has no `format`, because adding one would change the types that consumers have generated. */
const Instant = Type.String(INSTANT);

const Tokens = Type.Object(RecordedTokens.properties, {
  title: 'Tokens',
  description: 'Token counts',
});

const ModelCall = Type.Object(
  {
    request_sha256: Type.String({
      description: 'SHA-256 in hex of the request body in canonical JSON (RFC 8785)',
    }),
    response_id: Type.String(),
    model: Type.String({ description: 'As the provider reported it' }),
    finish_reason: Type.String(),
    tokens: Tokens,
    duration_ms,
    fallback: Type.Optional(
      Type.Object(
        {
          model: Type.String({ description: 'Id of the model in the registry' }),
          upstream_model: Type.String({ description: "The provider's own name of the model" }),
          max_completion_tokens: Type.Optional(Type.Integer()),
        },
        {
          title: 'FallbackModel',
          description: "Only where another model than the turn's answered",
        },
      ),
    ),
  },
  { title: 'ModelCall', description: 'One model call that answered' },
);

const SessionStarted = publicSchema(
  'turnlog.session.started.v1',
  'sessions',
  {
    session_id,
    agent_id: Type.String(),
    forked_from: Type.Optional(
      Type.Object(
        { session_id, turn },
        { title: 'ForkedFrom', description: 'The session and the turn that it was forked from' },
      ),
    ),
  },
  'A session began',
);

const TurnStarted = publicSchema(
  'turnlog.session.turn_started.v1',
  'sessions',
  {
    session_id,
    turn,
    input: Type.String(),
    model: Type.String({ description: 'Id of the model in the registry' }),
    agent_revision: Type.Integer({
      minimum: 0,
      description:
        'Revision of the agent that the turn runs with: `ce_streamrevision` of the agent event',
    }),
    deadline: Instant,
    ...ERASED_TEXTS,
  },
  'A turn began: what was asked',
);

const ToolCalled = publicSchema(
  'turnlog.session.tool_called.v1',
  'sessions',
  {
    session_id,
    turn,
    round: Type.Integer({
      minimum: 1,
      description: 'Which model call of the turn asked for it, from 1',
    }),
    call_id: Type.String(),
    tool: Type.String(),
    arguments: Type.String({ description: "The model's own text, verbatim" }),
    result: Type.String(),
    is_error: Type.Boolean(),
    duration_ms,
    ...ERASED_TEXTS,
  },
  'A tool was called for the model',
);

const TurnCompleted = publicSchema(
  'turnlog.session.turn_completed.v1',
  'sessions',
  {
    session_id,
    turn,
    output: Type.String(),
    model: Type.String({ description: 'As the provider reported it' }),
    tool_used: Type.String({ description: 'Empty when no tool was called' }),
    tokens: Tokens,
    finish_reason: Type.String(),
    duration_ms,
    calls: Type.Array(ModelCall),
    ...ERASED_TEXTS,
  },
  'A turn was answered',
);

const TurnFailed = publicSchema(
  'turnlog.session.turn_failed.v1',
  'sessions',
  {
    session_id,
    turn,
    code: Type.String(),
    message: Type.String(),
    output: Type.Optional(
      Type.String({ description: "The model's answer, where it is not what was asked for" }),
    ),
    tokens: Type.Optional(Tokens),
    calls: Type.Array(ModelCall),
    ...ERASED_TEXTS,
  },
  'A turn ended without an answer',
);

const TurnInterrupted = publicSchema(
  'turnlog.session.turn_interrupted.v1',
  'sessions',
  {
    session_id,
    turn,
    reason: Type.String({ examples: ['crash', 'cancelled', 'deadline', 'shutdown'] }),
  },
  'A turn was cut off: by a client, a crash, a shut-down, or its deadline',
);

const SessionCompacted = publicSchema(
  'turnlog.session.compacted.v1',
  'sessions',
  {
    session_id,
    from_turn: turn,
    up_to_turn: turn,
    summary: Type.String({
      description: 'What prompts hold in place of the turns up to `up_to_turn`',
    }),
    model: Type.String({ description: 'As the provider reported it' }),
    tokens: Tokens,
    ...ERASED_TEXTS,
  },
  'Older turns of a session were summarised; the turns themselves stay as they were',
);

const Label = Type.Object(
  { name: Type.String(), value: Type.String() },
  { title: 'Label', description: 'What a session is found by' },
);

const SessionDescribed = publicSchema(
  'turnlog.session.described.v1',
  'sessions',
  {
    session_id,
    title: Type.Optional(Type.String({ description: 'Absent when the session has none' })),
    labels: Type.Array(Label),
    ...ERASED_TEXTS,
  },
  'A session was given a title or labels; all that it has after the change',
);

const SessionErased = publicSchema(
  'turnlog.session.erased.v1',
  'sessions',
  { session_id, reason: Type.String({ examples: ['request', 'retention', 'account'] }) },
  'A session was erased: what consumers keep of it is to go; nothing follows',
);

const schemas = [
  SessionStarted,
  TurnStarted,
  ToolCalled,
  TurnCompleted,
  TurnFailed,
  TurnInterrupted,
  SessionCompacted,
  SessionDescribed,
  SessionErased,
] as const;

/**
 * The public content of a session's event. Fields are named one by one, so that a new field is not
 * published without an explicit decision.
 */
function toPublic(event: SessionEvent, id: string): PublicContentOf<(typeof schemas)[number]> {
  const key = { session_id: id };
  switch (event.type) {
    case 'session.started.v1': {
      const { agent_id, forked_from } = event.data;
      return publicContent(SessionStarted, {
        ...key,
        agent_id,
        ...(forked_from && { forked_from: pick(forked_from, ['session_id', 'turn']) }),
      });
    }
    case 'session.turn_started.v1': {
      const fields = ['turn', 'input', 'model', 'agent_revision', 'deadline'] as const;
      return publicContent(TurnStarted, { ...key, ...pick(event.data, fields) });
    }
    case 'session.tool_called.v1': {
      const call = ['turn', 'round', 'call_id', 'tool', 'arguments'] as const;
      const outcome = ['result', 'is_error', 'duration_ms'] as const;
      return publicContent(ToolCalled, { ...key, ...pick(event.data, [...call, ...outcome]) });
    }
    case 'session.turn_completed.v1': {
      const answer = ['turn', 'output', 'model', 'tool_used', 'tokens', 'finish_reason'] as const;
      const calls = ['duration_ms', 'calls'] as const;
      return publicContent(TurnCompleted, { ...key, ...pick(event.data, [...answer, ...calls]) });
    }
    case 'session.turn_failed.v1': {
      const fields = ['turn', 'code', 'message', 'output', 'tokens', 'calls'] as const;
      return publicContent(TurnFailed, { ...key, ...pick(event.data, fields) });
    }
    case 'session.turn_interrupted.v1': {
      const { turn: number, reason, cause } = event.data;
      return publicContent(TurnInterrupted, { ...key, turn: number, reason: cause ?? reason });
    }
    case 'session.compacted.v1':
      return publicContent(SessionCompacted, {
        ...key,
        ...pick(event.data, ['from_turn', 'up_to_turn', 'summary']),
        ...pick(event.data.call, ['model', 'tokens']),
      });
    case 'session.described.v1':
      return publicContent(SessionDescribed, {
        ...key,
        ...pick(event.data, ['title']),
        labels: event.data.labels.map((label) => pick(label, ['name', 'value'])),
      });
    case 'session.erased.v1':
      // The note of an operator is internal.
      return publicContent(SessionErased, { ...key, reason: event.data.reason });
    default:
      return event satisfies never;
  }
}

export const publicSessionEvents = { schemas, toPublic };
