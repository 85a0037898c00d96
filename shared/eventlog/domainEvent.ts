import { setImmediate } from 'node:timers/promises';
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
 * Converts a stored shape that is no longer written into its successor. Keyed by the older type
 * name.
 */
type Upcasters = ReadonlyMap<string, (data: unknown) => Shape>;

/** No type has a second version yet; docs/extend.md ("An event type") explains when to add one. */
const UPCASTERS: Upcasters = new Map();

const validators = new Map(
  eventSchemas.map((schema) => [schema.properties.type.const as string, lazyValidator(schema)]),
);

/**
 * Compiles the validators of these types of events, and their functions, which V8 compiles when they
 * are called, one per turn of the event loop. Otherwise the first request that records such an event
 * would do so, in one step of tens of milliseconds.
 */
export async function compileEventValidators(types: readonly DomainEvent['type'][]): Promise<void> {
  for (const type of types) {
    validators.get(type)?.()({ type, data: {} });
    await setImmediate();
  }
}

const metadataValidator = lazyValidator(EventMetadata);

/** True for metadata that matches the schema. */
export const isValidMetadata = (metadata: unknown): metadata is EventMetadata =>
  metadataValidator()(metadata);

/** The first schema violation of an event; undefined for a valid event or an unknown type. */
function findSchemaViolation(shape: Shape): string | undefined {
  const validate = validators.get(shape.type)?.();
  if (!validate || validate(shape)) return undefined;
  const [problem] = problemsOf(validate.errors);
  return `${shape.type} does not fit its schema: ${problem?.path ?? ''} ${problem?.message ?? ''}`;
}

/**
 * Call before an event is written: an event that violates its schema could never be read again, and
 * would make its whole stream unreadable. Throws `event_invalid`.
 */
export function requireValidEvent(event: DomainEvent): void {
  const problem = findSchemaViolation(event);
  if (problem !== undefined) throw new TurnlogError('event_invalid', problem);
}

/**
 * Upcasts a recorded event to the current version and checks it against its schema. Undefined for
 * an unknown type. Throws a plain Error when the data violates the schema.
 */
export function toDomainEvent(
  recorded: RecordedEvent,
  upcasters: Upcasters = UPCASTERS,
): DomainEvent | undefined {
  let shape: Shape = { type: recorded.type, data: recorded.data };
  for (let upcast = upcasters.get(shape.type); upcast; upcast = upcasters.get(shape.type))
    shape = upcast(shape.data);
  if (!validators.has(shape.type)) return undefined;
  const problem = findSchemaViolation(shape);
  if (problem !== undefined) throw new Error(problem);
  return shape as DomainEvent;
}
