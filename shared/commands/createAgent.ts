import { agent } from '../domain/agent/decider.ts';
import type { AgentConfiguration } from '../domain/agent/events.ts';
import { isTurnlogError, TurnlogError } from '../errors.ts';
import { appendEvents, NO_STREAM } from '../eventlog/append.ts';
import { agentStream } from '../eventlog/streams.ts';
import type { ChatModels } from '../ports/chatModel.ts';
import { isoTime } from '../ports/clock.ts';
import type { Toolbox } from '../ports/toolbox.ts';
import { untilShown, type Actor, type CommandContext } from './context.ts';

export interface AgentCatalogue {
  models: ChatModels;
  toolbox: Toolbox;
  /** UI components that agents may name; the first is the default. */
  components: readonly string[];
}

export interface CreateAgentInput {
  name: string;
  instruction: string;
  model: string;
  tool?: string;
  component?: string;
}

const unsupported = (
  field: 'model' | 'tool' | 'component',
  value: string,
  supported: readonly string[],
): TurnlogError => {
  const message = `The ${field} ${JSON.stringify(value)} is not supported. Supported: ${supported.join(', ') || 'none'}.`;
  return new TurnlogError(`${field}_not_supported`, message, {
    details: { [field]: { message, path: `/${field}` } },
  });
};

/** Errors: `model_not_supported`, `tool_not_supported` with a message that lists what is. */
export function requireSupported(
  { models, toolbox }: AgentCatalogue,
  model: string,
  tool: string | undefined,
): void {
  if (!models.find(model))
    throw unsupported(
      'model',
      model,
      models.list().map(({ id }) => id),
    );
  if (tool !== undefined && !toolbox.has(tool))
    throw unsupported(
      'tool',
      tool,
      toolbox.list().map(({ name }) => name),
    );
}

function configurationOf(catalogue: AgentCatalogue, input: CreateAgentInput): AgentConfiguration {
  requireSupported(catalogue, input.model, input.tool);
  const component = input.component ?? catalogue.components[0];
  if (component === undefined || !catalogue.components.includes(component))
    throw unsupported('component', component ?? '', catalogue.components);
  return { ...input, component };
}

/**
 * Creates an agent of the actor's account; durable and listed when it resolves.
 * Errors: `model_not_supported`, `tool_not_supported`, `component_not_supported`,
 * `payload_too_large` for texts whose JSON no event holds, and those of EventStore.append.
 */
export async function createAgent(
  context: CommandContext & AgentCatalogue,
  actor: Actor,
  input: CreateAgentInput,
): Promise<{ agent_id: string; created_at: string }> {
  const configuration = configurationOf(context, input);
  const agent_id = context.ids.typeId('agent');
  const recorded_at = isoTime(context.clock.now());
  const events = agent
    .decide({ type: 'create_agent', configuration }, agent.initialState)
    .map((event) => ({ id: context.ids.uuid(), ...event }));
  const { position } = await appendEvents(
    context.store,
    { stream: agentStream(agent_id), head: NO_STREAM },
    events,
    { ...actor, causation_id: actor.request_id, recorded_at },
  ).catch((error: unknown) => {
    throw isTurnlogError(error, 'event_invalid')
      ? new TurnlogError('payload_too_large', 'The agent is too large to be recorded.', {
          cause: error,
        })
      : error;
  });
  await untilShown(context, position);
  return { agent_id, created_at: recorded_at };
}
