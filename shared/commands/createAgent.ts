import { agent } from '../domain/agent/decider.ts';
import { isTurnlogError, TurnlogError } from '../errors.ts';
import { agentStream } from '../eventlog/streams.ts';
import { supportedParameters, type ParametersInput } from './agentParameters.ts';
import { requireSupported, supportedComponent, type AgentCatalogue } from './agentCatalogue.ts';
import { untilShown, type Actor, type CommandContext } from './context.ts';
import { handle } from './handle.ts';
import { newStream } from './target.ts';

interface CreateAgentInput extends ParametersInput {
  name: string;
  instruction: string;
  model: string;
  tool?: string;
  component?: string;
  compaction?: boolean;
}

function answerable(error: unknown): unknown {
  return isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('payload_too_large', 'The agent is too large to be recorded.', {
        cause: error,
      })
    : error;
}

/**
 * Creates an agent of the actor's account; durable and listed when it resolves.
 * Errors: `model_not_supported`, `tool_not_supported`, `component_not_supported`,
 * `invalid_request` for parameters that its model does not take, `payload_too_large` for texts whose JSON no event holds, and those of handle.
 */
export async function createAgent(
  context: CommandContext & { catalogue: AgentCatalogue },
  actor: Actor,
  input: CreateAgentInput,
): Promise<{ agent_id: string; created_at: string }> {
  const { catalogue, ids } = context;
  const { name, instruction, model, tool } = input;
  requireSupported(catalogue, model, tool);
  const component = supportedComponent(catalogue, input.component);
  const parameters = await supportedParameters(catalogue, input, actor.account_id);
  const configuration = {
    name,
    instruction,
    model,
    ...(tool !== undefined && { tool }),
    component,
    ...(parameters && { parameters }),
  };
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
