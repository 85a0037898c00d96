import * as fc from 'fast-check';
import { isErasure, type DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import type { ModelCall } from '../../../shared/sessions/turns/promptParts.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import {
  accountErased,
  accountOpened,
  agentCreated,
  agentDeleted,
  agentErased,
  agentUpdated,
  EVERY_EVENT,
  keyIssued,
  keyRevoked,
  modelCall,
  sessionDescribed,
  sessionErased,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from './events.ts';
import { recordHistory } from './history.ts';

type Events = DomainEvent[];

/** Calls of the turn's model, or of a fallback. */
const modelCalls: fc.Arbitrary<ModelCall[]> = fc
  .tuple(fc.array(fc.nat(100), { maxLength: 2 }), fc.constantFrom(undefined, 'spare'))
  .map(([counts, model]) =>
    counts.map((prompt) => ({
      ...modelCall,
      tokens: { prompt, completion: 1, total: prompt + 1 },
      ...(model && { fallback: { model, upstream_model: model } }),
    })),
  );

const ended = (turn: number): fc.Arbitrary<DomainEvent> =>
  fc.oneof(
    fc
      .tuple(fc.string({ unit: 'grapheme' }), modelCalls)
      .map(([output, calls]) => turnCompleted(turn, { output, calls })),
    modelCalls.map((calls) => turnFailed(turn, { calls })),
    fc.constant(turnInterrupted(turn)),
  );

const turnEvents = (turn: number): fc.Arbitrary<Events> =>
  fc
    .tuple(fc.string({ unit: 'grapheme' }), fc.nat(3), ended(turn))
    .map(([input, calls, end]) => [
      turnStarted(turn, { input }),
      ...Array.from({ length: calls }, (_, index) =>
        toolCalled(turn, { call_id: `call_${index}` }),
      ),
      end,
    ]);

/**
 * What may follow anything in a session: it neither begins it nor belongs to a turn. A new type of
 * that kind joins by itself.
 */
export const ofNoTurn = Object.values(EVERY_EVENT).filter(
  ({ type, data }) =>
    type.startsWith('session.') && !isErasure(type) && !('turn' in data || 'agent_id' in data),
);

/** Labels that different sessions have, so that they are found, changed and lost. */
const descriptions: fc.Arbitrary<Events> = fc.array(
  fc
    .tuple(
      fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2')),
      fc.option(fc.string({ unit: 'grapheme' }), { nil: undefined }),
    )
    .map(([labels, title]) => sessionDescribed({ ...labels }, title)),
  { maxLength: 2 },
);

/** A session of up to three turns, of which the last may still be open. */
const sessionEvents: fc.Arbitrary<Events> = fc
  .tuple(
    fc.constantFrom('agent_a', 'agent_b'),
    fc.tuple(turnEvents(1), turnEvents(2), turnEvents(3)),
    fc.nat(20),
    fc.subarray(ofNoTurn),
    fc.tuple(descriptions, descriptions),
    fc.option(fc.constantFrom('request', 'account'), { nil: undefined }),
  )
  .map(([agent, turns, cut, more, [first, last], reason]) => [
    sessionStarted(agent),
    ...first,
    ...turns.flat().slice(0, cut),
    ...more,
    ...last,
    ...(reason ? [sessionErased({ reason })] : []),
  ]);

const agentEvents: fc.Arbitrary<Events> = fc
  .tuple(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }), fc.boolean(), fc.boolean())
  .map(([names, deleted, erased]) => [
    agentCreated({ tool: 'calculator' }),
    ...names.map((name): DomainEvent => agentUpdated({ name })),
    ...(deleted ? [agentDeleted()] : []),
    ...(erased ? [agentErased()] : []),
  ]);

const accountEvents = (prefix: string): fc.Arbitrary<Events> =>
  fc.tuple(fc.array(fc.boolean(), { maxLength: 3 }), fc.boolean()).map(([keys, erased]) => [
    accountOpened(),
    ...keys.flatMap((revoked, index): Events => {
      const key = `${prefix}key_${index}`;
      return [keyIssued(key), ...(revoked ? [keyRevoked(key)] : [])];
    }),
    ...(erased ? [accountErased()] : []),
  ]);

/**
 * What a valid log may hold: several streams, each in order, interleaved at random. Ids begin with
 * `prefix`.
 */
export function randomHistory(prefix: string, first = 0): fc.Arbitrary<StoredEvent[]> {
  const streams = fc.tuple(
    accountEvents(prefix),
    agentEvents,
    agentEvents,
    sessionEvents,
    sessionEvents,
    sessionEvents,
  );
  const names = [
    'account-acct',
    'agent-agent_1',
    'agent-agent_2',
    'session-session_1',
    'session-session_2',
    'session-session_3',
  ];
  return fc
    .tuple(streams, fc.array(fc.nat(5), { minLength: 60, maxLength: 60 }))
    .map(([given, picks]) => {
      const { record } = recordHistory(first);
      const rest = given.map((events) => [...events]);
      const order = [...picks, ...rest.flatMap((events, index) => events.map(() => index))];
      return order.flatMap((index) => {
        const event = rest[index]?.shift();
        const [kind, id] = (names[index] ?? '').split(/-(.*)/);
        return event
          ? [
              record(
                { stream: `${kind ?? ''}-${prefix}${id ?? ''}`, account: `${prefix}acct` },
                event,
              ),
            ]
          : [];
      });
    });
}

/**
 * How a log is delivered: in batches of any size, and now and then again from an earlier place.
 * Covers all events in the end.
 */
export const deliveries = (events: readonly StoredEvent[]): fc.Arbitrary<StoredEvent[][]> =>
  fc
    .array(fc.tuple(fc.nat(events.length), fc.nat(events.length)), { maxLength: 8 })
    .map((jumps) => {
      const batches: StoredEvent[][] = [];
      let reached = 0;
      for (const [back, size] of jumps) {
        const from = Math.min(back, reached);
        const to = Math.min(events.length, from + size);
        batches.push(events.slice(from, to));
        reached = Math.max(reached, to);
      }
      return [...batches, events.slice(reached)].filter((batch) => batch.length > 0);
    });
