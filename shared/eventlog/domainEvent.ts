import type { DomainEvent } from '../domain/events.ts';
import { eventSchemas } from '../domain/events.ts';
import { lazyValidator, problemsOf } from '../validation.ts';
import { EventMetadata, type RecordedEvent } from './event.ts';

interface Shape {
  type: string;
  data: unknown;
}

/**
 * Turns a stored shape that is no longer written into the one that followed it. Keyed by the older
 * type name.
 */
type Upcasters = Readonly<Record<string, (data: unknown) => Shape>>;

/** No type has a second version yet. docs/extend.md, "An event type", says when one is due. */
const UPCASTERS: Upcasters = {};

const validators = new Map(
  eventSchemas.map((schema) => [schema.properties.type.const as string, lazyValidator(schema)]),
);

const metadataValidator = lazyValidator(EventMetadata);

/** True for metadata that every event has, as its schema describes it. */
export const metadataFits = (metadata: unknown): metadata is EventMetadata =>
  metadataValidator()(metadata);

/**
 * The domain's view of a recorded event: upcast to the current version and checked against its
 * schema. Undefined for a type that this version does not know. Errors: a plain Error when the data
 * does not fit the schema.
 */
export function toDomainEvent(
  recorded: RecordedEvent,
  upcasters: Upcasters = UPCASTERS,
): DomainEvent | undefined {
  let shape: Shape = { type: recorded.type, data: recorded.data };
  for (let upcast = upcasters[shape.type]; upcast; upcast = upcasters[shape.type])
    shape = upcast(shape.data);
  const validate = validators.get(shape.type)?.();
  if (!validate) return undefined;
  if (!validate(shape)) {
    const [problem] = problemsOf(validate.errors);
    throw new Error(
      `${recorded.type} does not fit its schema: ${problem?.path ?? ''} ${problem?.message ?? ''}`,
    );
  }
  return shape;
}
