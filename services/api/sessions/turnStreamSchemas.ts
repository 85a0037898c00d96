import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { TURN_POSITION_PATTERN } from '../../../shared/sessions/turns/turnOutputPosition.ts';
import { envelopeSchema, Failure, SessionId } from '../openapi/commonSchemas.ts';
import { RunResult } from '../runs/schemas.ts';
import { ToolCall, turnNumber } from './schemas.ts';

const ID = { pattern: TURN_POSITION_PATTERN, examples: ['1-1-42'] };

export const TurnEventId = Type.String({
  ...ID,
  description: 'The id of the last event that the client has',
});

const recorded = Type.Optional(
  Type.Literal(true, { description: 'Present where it is read from the record, not live' }),
);

export const TurnStarted = Type.Object(
  { session_id: SessionId, turn: turnNumber },
  { title: 'TurnStarted', description: 'A turn that has started' },
);

export const OutputDelta = Type.Object(
  {
    round: Type.Integer({ minimum: 1, description: 'The model call that the text belongs to' }),
    text: Type.String({ description: 'The next part of the text' }),
    recorded,
  },
  { title: 'OutputDelta', description: 'A part of the output or the reasoning of a model call' },
);

export const StreamedToolCall = Type.Object(
  { ...ToolCall.properties, recorded },
  { title: 'StreamedToolCall', description: 'A tool call as the transcript shows it' },
);

const TITLES = {
  'turn.started': 'TurnStartedEvent',
  'reasoning.delta': 'ReasoningDeltaEvent',
  'output.delta': 'OutputDeltaEvent',
  'tool.called': 'ToolCalledEvent',
  'turn.completed': 'TurnCompletedEvent',
  error: 'TurnErrorEvent',
} as const;
type TurnStreamEventName = keyof typeof TITLES;

/** A server-sent event whose `data` is parsed. */
const streamEvent = (event: TurnStreamEventName, data: TSchema, description: string) =>
  Type.Object(
    {
      event: Type.Literal(event),
      id: Type.Optional(
        Type.String({ ...ID, description: 'To continue after this event, as `Last-Event-ID`' }),
      ),
      data,
    },
    { title: TITLES[event], description },
  );

/** The events of a turn's stream: their names, and the JSON of their `data`. */
export const TurnStreamEvent = Type.Unsafe<object>({
  title: 'TurnStreamEvent',
  description:
    'A server-sent event of a turn: its fields `event` and `id`, and its `data`, which is JSON. Clients must ignore events that they do not know.',
  type: 'object',
  oneOf: [
    streamEvent('turn.started', TurnStarted, 'The first event'),
    streamEvent('reasoning.delta', OutputDelta, "The model's reasoning as it arrives"),
    streamEvent('output.delta', OutputDelta, 'Output as it arrives'),
    streamEvent('tool.called', StreamedToolCall, 'A tool was called'),
    streamEvent(
      'turn.completed',
      envelopeSchema('runAgent', RunResult, 200),
      'The last event: the result, as the JSON response has it',
    ),
    streamEvent('error', Failure, 'The last event: the failure, as the JSON response has it'),
  ],
  discriminator: {
    propertyName: 'event',
    mapping: Object.fromEntries(
      Object.entries(TITLES).map(([event, title]) => [event, `#/components/schemas/${title}`]),
    ),
  },
});
