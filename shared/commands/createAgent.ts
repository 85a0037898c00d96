import { agent } from '../domain/agent/decider.ts';
import { isTurnlogError, TurnlogError } from '../errors.ts';
import { agentStream } from '../eventlog/streams.ts';
import { requireSupported, supportedComponent, type AgentCatalogue } from './agentCatalogue.ts';
import { untilShown, type Actor, type CommandContext } from './context.ts';
import { handle } from './handle.ts';
import { newStream } from './target.ts';

/** What a client says of an agent. */
export interface AgentInput {
  name: string;
  instruction: string;
  model: string;
  tool?: string;
  component?: string;
}

/** The error that a client is told where an agent can't be recorded. */
export function answerable(error: unknown): unknown {
  return isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('payload_too_large', 'The agent is too large to be recorded.', {
        cause: error,
      })
    : error;
}

/**
 * Creates an agent of the actor's account; durable and listed when it resolves.
 * Errors: `model_not_supported`, `tool_not_supported`, `component_not_supported`,
 * `payload_too_large` for texts whose JSON no event holds, and those of handle.
 */
export async function createAgent(
  context: CommandContext & { catalogue: AgentCatalogue },
  actor: Actor,
  input: AgentInput,
): Promise<{ agent_id: string; created_at: string }> {
  const { catalogue, ids } = context;
  requireSupported(catalogue, input.model, input.tool);
  const configuration = { ...input, component: supportedComponent(catalogue, input.component) };
  const agent_id = ids.typeId('agent');
  const target = newStream(agentStream(agent_id), agent);
  try {
    const command = { type: 'create_agent', configuration } as const;
    const { position, recorded_at } = (await handle(context, actor, target, command))!;
    await untilShown(context, position);
    return { agent_id, created_at: recorded_at };
  } catch (error) {
    throw answerable(error);
  }
}
