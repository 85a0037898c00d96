import { agent } from './decider.ts';
import type { AgentConfiguration } from './events.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { findFirstEvent } from '../eventlog/reading/readWhole.ts';
import { agentStream } from '../eventlog/streams.ts';
import { requireSupportedParameters, type ParametersInput } from './validateParameters.ts';
import { requireSupported, type AgentCatalogue } from './catalogue.ts';
import {
  waitUntilAgentVisible,
  type Actor,
  type CommandContext,
} from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { type Claim, createOnce } from '../requests/idempotency.ts';
import { newStreamTarget } from '../commandHandling/targetStream.ts';

/** The configuration of an agent as a client sends it. */
export interface AgentInput extends ParametersInput {
  name: string;
  instruction: string;
  model: string;
  tool?: string;
  component?: string;
  compaction?: boolean;
}

interface CreatedAgent {
  agent_id: string;
  created_at: string;
}

type CreateContext = CommandContext & { catalogue: AgentCatalogue };

/** The error of the API for an agent that does not fit an event. */
export function toClientAgentError(error: unknown): unknown {
  return isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('payload_too_large', 'The agent is too large to be recorded.', {
        cause: error,
      })
    : error;
}

/** Validates the input, and builds the configuration to record. */
export async function buildConfiguration(
  { catalogue }: Pick<CreateContext, 'catalogue'>,
  { account_id }: Pick<Actor, 'account_id'>,
  { name, instruction, model, tool, component, compaction, ...input }: AgentInput,
): Promise<AgentConfiguration> {
  requireSupported(catalogue, model, tool);
  const parameters = await requireSupportedParameters(catalogue, { ...input, model }, account_id);
  return {
    name,
    instruction,
    model,
    ...(tool !== undefined && { tool }),
    component: component ?? catalogue.defaultComponent,
    ...(compaction && { compaction }),
    ...(parameters && { parameters }),
  };
}

/** The agent that an earlier attempt of the request created. */
async function findCreatedAgent(
  context: CreateContext,
  { account_id }: Actor,
  agent_id: string,
): Promise<CreatedAgent | undefined> {
  const created = await findFirstEvent(context, agentStream(agent_id));
  if (!created) return undefined;
  const { position } = created.recorded;
  await waitUntilAgentVisible(context, { position, account_id, agent_id });
  return { agent_id, created_at: created.recorded.metadata.recorded_at };
}

/**
 * Creates an agent of the actor's account; durable and listed when it resolves. All attempts of one
 * claimed request create one agent and get the same answer.
 * Errors: `model_not_supported`, `tool_not_supported`, `invalid_request` for parameters that the
 * model does not accept, `payload_too_large` for texts that do not fit an
 * event, and those of handle.
 */
export async function createAgent(
  context: CreateContext,
  actor: Actor,
  input: AgentInput,
  claim?: Claim<AgentConfiguration>,
): Promise<CreatedAgent> {
  const agent_id = claim?.reserved.id ?? context.ids.typeId('agent');
  return createOnce(context, claim, {
    findExisting: () => findCreatedAgent(context, actor, agent_id),
    create: async () => {
      const configuration = claim?.prepared ?? (await buildConfiguration(context, actor, input));
      const target = newStreamTarget(agentStream(agent_id), agent);
      const command = { type: 'create_agent', configuration } as const;
      const { position, recorded_at } = (await handle(context, actor, target, command))!;
      const { account_id } = actor;
      await waitUntilAgentVisible(context, { position, account_id, agent_id });
      return { agent_id, created_at: recorded_at };
    },
  }).catch((error: unknown) => {
    throw toClientAgentError(error);
  });
}
