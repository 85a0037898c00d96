import type { ChatRequest } from '../../../shared/domain/session/chat.ts';
import type { SessionEvent } from '../../../shared/domain/session/events.ts';
import type { ModelCall } from '../../../shared/domain/session/parts.ts';
import {
  chatRequest,
  compactionRequest,
  requestOf,
  systemText,
  turnsOf,
} from '../../../shared/domain/session/prompt.ts';
import type { TestService } from './service.ts';

type Client = Pick<TestService, 'get'>;

/** As it was before its texts were protected. */
function opened(value: unknown): any {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(opened);
  if (typeof (value as { text?: unknown }).text === 'string')
    return (value as { text: string }).text;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, opened(of)]));
}

/** Each request of a session that was answered, and what its event holds of it, from events alone. */
export async function rebuiltRequests(service: Client, session: string, agent: string) {
  const read = await service.get(`/v1/sessions/${session}/events?limit=1000`);
  const events = opened(read.body.data) as (SessionEvent & { revision: number })[];
  const { data: revisions } = (await service.get(`/v1/agents/${agent}/revisions`)).body;
  const summaryAt = (wanted: number | undefined) => {
    const found = events.find(({ revision }) => revision === wanted);
    return found?.type === 'session.compacted.v1' ? { text: found.data.summary } : undefined;
  };
  const requests: { request: ChatRequest; call: ModelCall }[] = [];
  const add = (call: ModelCall, request: ChatRequest): void =>
    void requests.push({
      call,
      request: call.fallback ? requestOf(call.fallback, request) : request,
    });
  for (const [at, event] of events.entries()) {
    const before = turnsOf(events.slice(0, at)).filter(({ output }) => output !== undefined);
    if (event.type === 'session.compacted.v1') {
      const { settings, summary_revision, from_turn, up_to_turn, call } = event.data;
      const turns = before.filter(({ turn }) => turn >= from_turn && turn <= up_to_turn);
      add(call, compactionRequest(settings, summaryAt(summary_revision), turns));
    }
    if (event.type !== 'session.turn_completed.v1' && event.type !== 'session.turn_failed.v1')
      continue;
    const started = events.findLast(
      ({ type, revision }) => type === 'session.turn_started.v1' && revision < event.revision,
    ) as Extract<SessionEvent, { type: 'session.turn_started.v1' }>;
    const { settings, context_from_turn, context, summary_revision } = started.data;
    const of = revisions.find(
      ({ revision }: { revision: number }) => revision === started.data.agent_revision,
    );
    const summary = context?.compacted === undefined ? undefined : summaryAt(summary_revision);
    const system = systemText(of.config.instruction, summary);
    const history = before.filter(({ turn }) => turn >= context_from_turn);
    const current = turnsOf(events.slice(0, at + 1)).at(-1)!;
    for (const [index, call] of event.data.calls.entries()) {
      const tool_calls = current.tool_calls.filter(({ round }) => round <= index);
      const turn = { ...current, tool_calls, output: undefined };
      add(call, chatRequest(settings, system, history, turn));
    }
  }
  return requests;
}
