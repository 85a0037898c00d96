import { Type, type Static, type TSchema } from 'typebox';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';

const orNull = <Schema extends TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const Delta = Type.Object({
  content: orNull(Type.String()),
  refusal: orNull(Type.String()),
  reasoning_content: Type.Optional(Type.Unknown()),
  reasoning: Type.Optional(Type.Unknown()),
  tool_calls: orNull(
    Type.Array(
      Type.Object({
        index: orNull(Type.Integer({ minimum: 0 })),
        id: orNull(Type.String()),
        function: orNull(
          Type.Object({ name: orNull(Type.String()), arguments: orNull(Type.String()) }),
        ),
      }),
    ),
  ),
});

/** The parts of a streamed chunk that are read; some servers omit them or send null. */
const Chunk = Type.Object({
  id: orNull(Type.String()),
  model: orNull(Type.String()),
  choices: orNull(
    Type.Array(
      Type.Object({
        index: orNull(Type.Integer()),
        finish_reason: orNull(Type.String()),
        delta: orNull(Delta),
      }),
    ),
  ),
  usage: Type.Optional(Type.Unknown()),
  error: Type.Optional(Type.Unknown()),
});
export type Chunk = Static<typeof Chunk>;
export type Delta = Static<typeof Delta>;

const validator = lazyValidator(Chunk);

/** Parses a chunk in an event's data; undefined for anything else. */
export function parseChunk(data: string): Chunk | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return validator()(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
