import { account } from '../accounts/decider.ts';
import type { AccountEvent } from '../accounts/events.ts';
import { agent } from '../agents/decider.ts';
import type { AgentEvent } from '../agents/events.ts';
import type { DomainEvent } from '../domain/events.ts';
import { replay } from '../replays/decider.ts';
import type { ReplayEvent } from '../replays/events.ts';
import type { Erasure } from '../domain/schema.ts';
import { session } from '../sessions/decider.ts';
import type { SessionEvent } from '../sessions/events.ts';
import { webhook } from '../webhooks/decider.ts';
import type { WebhookEvent } from '../webhooks/events.ts';
import { streamKind } from '../eventlog/streams.ts';

/** What an erasure needs to know of a kind of streams: what their events come to, and what it says. */
interface Erasable<State, Event> {
  initialState: State;
  evolve: (state: State, event: Event) => State;
  /** What the decider decides. Errors: Rejection. */
  decide: (erasure: Erasure, state: State) => DomainEvent[];
  /** What is said of a stream that no decider can judge, because it is damaged. */
  event: (erasure: Erasure) => DomainEvent;
}

const withoutReason = ({ reason: _reason, ...data }: Erasure) => data;

const ERASABLE = {
  account: {
    ...account,
    decide: (erasure, state) =>
      account.decide({ type: 'erase_account', ...withoutReason(erasure) }, state),
    event: (erasure) => ({ type: 'account.erased.v1', data: withoutReason(erasure) }),
  } satisfies Erasable<typeof account.initialState, AccountEvent>,
  agent: {
    ...agent,
    decide: (erasure, state) => agent.decide({ type: 'erase_agent', ...erasure }, state),
    event: (data) => ({ type: 'agent.erased.v1', data }),
  } satisfies Erasable<typeof agent.initialState, AgentEvent>,
  replay: {
    ...replay,
    decide: (erasure, state) => replay.decide({ type: 'erase_replay', ...erasure }, state),
    event: (data) => ({ type: 'replay.erased.v1', data }),
  } satisfies Erasable<typeof replay.initialState, ReplayEvent>,
  session: {
    ...session,
    decide: (erasure, state) => session.decide({ type: 'erase_session', ...erasure }, state),
    event: (data) => ({ type: 'session.erased.v1', data }),
  } satisfies Erasable<typeof session.initialState, SessionEvent>,
  webhook: {
    ...webhook,
    decide: (erasure, state) => webhook.decide({ type: 'erase_webhook', ...erasure }, state),
    event: (data) => ({ type: 'webhook.erased.v1', data }),
  } satisfies Erasable<typeof webhook.initialState, WebhookEvent>,
};

/** How streams of this one's kind are erased. Errors: a plain Error for a kind without texts. */
export function erasableOf(stream: string): Erasable<unknown, DomainEvent> {
  const found = (ERASABLE as Readonly<Record<string, unknown>>)[streamKind(stream)];
  if (!found) throw new Error(`streams such as ${stream} have no texts`);
  return found as Erasable<unknown, DomainEvent>;
}
