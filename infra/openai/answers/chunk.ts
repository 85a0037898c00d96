import type { Static, TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';

/** A member that some servers omit or send as null. */
export const nullish = <Schema extends TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const Delta = Type.Object({
  content: nullish(Type.String()),
  refusal: nullish(Type.String()),
  reasoning_content: Type.Optional(Type.Unknown()),
  reasoning: Type.Optional(Type.Unknown()),
  tool_calls: nullish(
    Type.Array(
      Type.Object({
        index: nullish(Type.Integer({ minimum: 0 })),
        id: nullish(Type.String()),
        function: nullish(
          Type.Object({ name: nullish(Type.String()), arguments: nullish(Type.String()) }),
        ),
      }),
    ),
  ),
});

/** The parts of a streamed chunk that are read; some servers omit them or send null. */
const Chunk = Type.Object({
  id: nullish(Type.String()),
  model: nullish(Type.String()),
  choices: nullish(
    Type.Array(
      Type.Object({
        index: nullish(Type.Integer()),
        finish_reason: nullish(Type.String()),
        delta: nullish(Delta),
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
