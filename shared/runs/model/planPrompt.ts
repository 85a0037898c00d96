import type { ChatSettings } from '../../sessions/turns/chat.ts';
import type { AgentRow } from '../../readModels/tables.ts';
import type { AgentCatalogue } from '../../agents/catalogue.ts';
import type { RunContext } from '../context.ts';
import type { RunRequest } from '../runRequest.ts';
import { historyBudget } from './contextWindow.ts';

/** What is settled before the session is read. */
interface PromptPlan {
  settings: ChatSettings;
  /** Tokens that are left for earlier turns. */
  tokens: number;
}

async function settingsFor(
  { models, toolbox }: AgentCatalogue,
  agent: AgentRow,
): Promise<ChatSettings> {
  const { upstream_model, max_output_tokens } = models.find(agent.model)!;
  const { temperature, max_output_tokens: own, response_format } = agent.parameters ?? {};
  // The registry may have changed since the agent was made.
  const limits = [own, max_output_tokens].filter((limit) => limit !== undefined);
  return {
    model: upstream_model,
    ...(limits.length > 0 && { max_completion_tokens: Math.min(...limits) }),
    ...(response_format && { response_format }),
    ...(temperature !== undefined && { temperature }),
    ...(agent.tool === null ? {} : { tools: await toolbox.definitions(agent.tool) }),
  };
}

/** Errors: `invalid_request` where the input and the instruction are too long for the model. */
export async function planPrompt(
  { catalogue, budget }: Pick<RunContext, 'catalogue' | 'budget'>,
  request: RunRequest,
): Promise<PromptPlan> {
  const { settings: recorded, shown } = request.replay ?? {};
  const settings = recorded ?? (await settingsFor(catalogue, request.agent));
  // What was shown then is shown again.
  if (shown) return { settings, tokens: Infinity };
  const model = catalogue.models.find(request.agent.model)!;
  return { settings, tokens: await historyBudget(budget, model, settings, request) };
}
