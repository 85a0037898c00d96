import type { DomainEvent } from './eventTypes.ts';
import { eventSchemas } from './eventTypes.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { lazyValidator, problemsOf } from '../lib/validation/validation.ts';
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
export const isValidMetadata = (metadata: unknown): metadata is EventMetadata =>
  metadataValidator()(metadata);

/** What is wrong with an event's data, by its schema, if anything; nothing for an unknown type. */
function problemOf(shape: Shape): string | undefined {
  const validate = validators.get(shape.type)?.();
  if (!validate || validate(shape)) return undefined;
  const [problem] = problemsOf(validate.errors);
  return `${shape.type} does not fit its schema: ${problem?.path ?? ''} ${problem?.message ?? ''}`;
}

/**
 * To be asked before an event is written: one that does not fit its schema can never be read again,
 * and takes its whole stream with it. Errors: `event_invalid`.
 */
export function requireValidEvent(event: DomainEvent): void {
  const problem = problemOf(event);
  if (problem !== undefined) throw new TurnlogError('event_invalid', problem);
}

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
  if (!validators.has(shape.type)) return undefined;
  const problem = problemOf(shape);
  if (problem !== undefined) throw new Error(problem);
  return shape as DomainEvent;
}
