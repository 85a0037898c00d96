import type { DomainEvent } from '../eventlog/eventTypes.ts';
import type { PublicContent } from './publicEvent.ts';

type Data<Type extends PublicContent['type']> = Extract<PublicContent, { type: Type }>['data'];

/**
 * The public content of a domain event; undefined for an internal event. Fields are copied one by
 * one, so that a new field of a domain event is not published without an explicit decision.
 */
export function toPublicContent(event: DomainEvent, id: string): PublicContent | undefined {
  const agent = (
    data: Omit<Data<'turnlog.agent.created.v1'>, 'agent_id'>,
  ): Data<'turnlog.agent.created.v1'> => ({
    agent_id: id,
    name: data.name,
    instruction: data.instruction,
    model: data.model,
    ...(data.tool !== undefined && { tool: data.tool }),
    component: data.component,
    ...(data.parameters && { parameters: data.parameters }),
  });
  switch (event.type) {
    case 'account.opened.v1':
    case 'account.key_issued.v1':
    case 'account.key_revoked.v1':
    case 'account.key_rotated.v1':
    case 'account.limits_set.v1':
    case 'account.retention_set.v1':
    case 'account.hold_set.v1':
    case 'account.audited.v1':
    case 'account.erased.v1':
      return undefined;
    case 'agent.created.v1':
      return { type: 'turnlog.agent.created.v1', channel: 'agents', data: agent(event.data) };
    case 'agent.updated.v1':
      return { type: 'turnlog.agent.updated.v1', channel: 'agents', data: agent(event.data) };
    case 'agent.deleted.v1':
      return { type: 'turnlog.agent.deleted.v1', channel: 'agents', data: agent(event.data) };
    case 'agent.erased.v1':
      return {
        type: 'turnlog.agent.erased.v1',
        channel: 'agents',
        data: { agent_id: id, reason: event.data.reason },
      };
    case 'session.started.v1': {
      const { agent_id, forked_from } = event.data;
      return {
        type: 'turnlog.session.started.v1',
        channel: 'sessions',
        data: {
          session_id: id,
          agent_id,
          ...(forked_from && {
            forked_from: { session_id: forked_from.session_id, turn: forked_from.turn },
          }),
        },
      };
    }
    case 'session.turn_started.v1': {
      const { turn, input, model, agent_revision, deadline } = event.data;
      return {
        type: 'turnlog.session.turn_started.v1',
        channel: 'sessions',
        data: { session_id: id, turn, input, model, agent_revision, deadline },
      };
    }
    case 'session.tool_called.v1': {
      const {
        turn,
        round,
        call_id,
        tool,
        arguments: text,
        result,
        is_error,
        duration_ms,
      } = event.data;
      return {
        type: 'turnlog.session.tool_called.v1',
        channel: 'sessions',
        data: {
          session_id: id,
          turn,
          round,
          call_id,
          tool,
          arguments: text,
          result,
          is_error,
          duration_ms,
        },
      };
    }
    case 'session.turn_completed.v1': {
      const { turn, output, model, tool_used, tokens, finish_reason, duration_ms, calls } =
        event.data;
      return {
        type: 'turnlog.session.turn_completed.v1',
        channel: 'sessions',
        data: {
          session_id: id,
          turn,
          output,
          model,
          tool_used,
          tokens,
          finish_reason,
          duration_ms,
          calls,
        },
      };
    }
    case 'session.turn_failed.v1': {
      const { turn, code, message, output, tokens, calls } = event.data;
      return {
        type: 'turnlog.session.turn_failed.v1',
        channel: 'sessions',
        data: {
          session_id: id,
          turn,
          code,
          message,
          ...(output !== undefined && { output }),
          ...(tokens && { tokens }),
          calls,
        },
      };
    }
    case 'session.turn_interrupted.v1': {
      const { turn, reason, cause } = event.data;
      return {
        type: 'turnlog.session.turn_interrupted.v1',
        channel: 'sessions',
        data: { session_id: id, turn, reason: cause ?? reason },
      };
    }
    case 'session.compacted.v1': {
      const { from_turn, up_to_turn, summary, call } = event.data;
      const { model, tokens } = call;
      return {
        type: 'turnlog.session.compacted.v1',
        channel: 'sessions',
        data: { session_id: id, from_turn, up_to_turn, summary, model, tokens },
      };
    }
    case 'session.described.v1': {
      const { title, labels } = event.data;
      return {
        type: 'turnlog.session.described.v1',
        channel: 'sessions',
        data: {
          session_id: id,
          ...(title !== undefined && { title }),
          labels: labels.map(({ name, value }) => ({ name, value })),
        },
      };
    }
    case 'session.erased.v1':
      // The note of an operator is internal.
      return {
        type: 'turnlog.session.erased.v1',
        channel: 'sessions',
        data: { session_id: id, reason: event.data.reason },
      };
    case 'log.restore_accepted.v1':
    case 'log.tree_declared.v1':
    case 'log.tree_replaced.v1':
    case 'request.begun.v1':
    case 'retention.time_kept.v1':
    case 'retention.time_confirmed.v1':
    case 'retention.erasures_confirmed.v1':
    case 'replay.started.v1':
    case 'replay.session_started.v1':
    case 'replay.turns_compared.v1':
    case 'replay.session_ended.v1':
    case 'replay.ended.v1':
    case 'replay.erased.v1':
    case 'webhook.created.v1':
    case 'webhook.changed.v1':
    case 'webhook.enabled.v1':
    case 'webhook.disabled.v1':
    case 'webhook.deleted.v1':
    case 'webhook.erased.v1':
      return undefined;
    default: {
      const unknown: never = event;
      return unknown;
    }
  }
}
