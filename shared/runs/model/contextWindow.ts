import type { ChatMessage, ChatRequest, ChatSettings } from '../../sessions/turns/chat.ts';
import { formatJson } from '../../sessions/turns/requestBody.ts';
import { systemText, turnMessages, type Summary, type Turn } from '../../sessions/turns/prompt.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { AgentRow } from '../../readModels/tables.ts';
import type { ModelInfo } from '../../ports/chatModel.ts';
import type { RunRequest } from '../runRequest.ts';
import type { AgentCatalogue } from '../../agents/catalogue.ts';
import type { ModelContext, TokenBudget } from '../context.ts';
import type { TokenCounter } from '../../ports/tokenCounter.ts';

/**
 * Tokens that a chat format adds around each message, rounded up (OpenAI's cookbook counts 3 and a
 * name).
 */
export const MESSAGE_OVERHEAD = 4;

/** The texts of messages that a tokenizer counts. */
export const messageTexts = (messages: readonly ChatMessage[]): string[] =>
  messages.flatMap((message) => [
    message.content ?? '',
    ...(message.role === 'assistant' ? assistantTexts(message) : []),
  ]);

const assistantTexts = ({
  reasoning_content,
  tool_calls = [],
}: Extract<ChatMessage, { role: 'assistant' }>): string[] => [
  ...(reasoning_content === undefined ? [] : [reasoning_content]),
  ...tool_calls.map(({ function: { name, arguments: args }, extra = '' }) => name + args + extra),
];

/** Characters of messages in a prompt. */
export function promptChars(messages: readonly ChatMessage[]): number {
  let chars = 0;
  for (const message of messages) {
    chars += message.content?.length ?? 0;
    if (message.role !== 'assistant') continue;
    chars += message.reasoning_content?.length ?? 0;
    for (const { function: called, extra = '' } of message.tool_calls ?? [])
      chars += called.arguments.length + extra.length;
  }
  return chars;
}

/** UTF-8 bytes of messages in a prompt. */
const promptMessageBytes = (messages: readonly ChatMessage[]): number =>
  messageTexts(messages).reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/**
 * An upper bound, because no tokenizer in use produces more tokens than bytes. Often makes an exact
 * count unnecessary.
 */
const maxTokens = (messages: readonly ChatMessage[]): number =>
  promptMessageBytes(messages) + messages.length * MESSAGE_OVERHEAD;

/** Exact tokens of messages in a prompt; counting may stop above `atMost`. */
const countMessages = async (
  counter: TokenCounter,
  messages: readonly ChatMessage[],
  accountId: string,
  atMost?: number,
): Promise<number> =>
  messages.length * MESSAGE_OVERHEAD +
  (await counter.count(messageTexts(messages), accountId, atMost));

/** Approximate average for English. */
const BYTES_OF_A_TOKEN = 4;

/**
 * Tokens of an answered model call. The number is estimated if counting takes too long, so that the
 * answer is not lost.
 */
export const countOrEstimate = (
  counter: TokenCounter,
  texts: readonly string[],
  accountId: string,
): Promise<number> =>
  counter.count(texts, accountId).catch((error: unknown) => {
    if (!isTurnlogError(error)) throw error;
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    return Math.ceil(bytes / BYTES_OF_A_TOKEN);
  });

/** Tokens reserved for the answer when the registry states no limit. */
const DEFAULT_OUTPUT_RESERVE = 4_096;

/** Control characters that take six bytes in JSON. */
// eslint-disable-next-line no-control-regex
const LONG_ESCAPES = /[\0-\x07\v\x0e-\x1f]/;

/** Bytes of a text in a request: as UTF-8, or as JSON where that is several times as long. */
const bytesInRequest = (text: string): number =>
  LONG_ESCAPES.test(text) ? Buffer.byteLength(JSON.stringify(text)) : Buffer.byteLength(text);

/** Completed turns never change, and long ones take milliseconds to measure. */
const measuredTurns = new WeakMap<Turn, number>();

function turnBytes(turn: Turn): number {
  const measured = measuredTurns.get(turn);
  if (measured !== undefined) return measured;
  const bytes = messageTexts(turnMessages(turn)).reduce(
    (sum, text) => sum + bytesInRequest(text),
    0,
  );
  measuredTurns.set(turn, bytes);
  return bytes;
}

/** Bytes of turns in a prompt. */
export const bytesOfTurns = (turns: readonly Turn[]): number =>
  turns.reduce((sum, turn) => sum + turnBytes(turn), 0);

/** Bytes of a prompt, without the overhead of the chat format. */
export const promptBytes = (
  { agent, input }: Pick<RunRequest, 'agent' | 'input'>,
  history: readonly Turn[],
): number => bytesInRequest(agent.instruction) + bytesInRequest(input) + bytesOfTurns(history);

/** The most messages of a turn: each tool call may be in a separate round. */
const turnMessageLimit = ({ tool_calls }: Turn): number => 2 + 2 * tool_calls.length;

/** The most messages of turns in a prompt. */
export const maxMessages = (turns: readonly Turn[]): number =>
  turns.reduce((sum, turn) => sum + turnMessageLimit(turn), 0);

/** Memory of a message beside its texts: objects of the turn, of the request and of their lists. */
const MEMORY_PER_MESSAGE = 256;

/** Bytes of memory that a prompt needs: many short turns need more than their texts. */
export const promptMemory = (
  request: Pick<RunRequest, 'agent' | 'input'>,
  history: readonly Turn[],
): number => promptBytes(request, history) + MEMORY_PER_MESSAGE * maxMessages(history);

/**
 * Tokens of the context window available for the prompt. The agent's output limit is fully
 * reserved.
 */
function promptTokenLimit(model: ModelInfo, { parameters }: Pick<AgentRow, 'parameters'>): number {
  const { context_window, max_output_tokens: modelLimit } = model;
  const agentLimit = parameters?.max_output_tokens;
  const reserve =
    agentLimit === undefined
      ? Math.min(modelLimit ?? DEFAULT_OUTPUT_RESERVE, Math.floor(context_window / 4))
      : Math.min(agentLimit, modelLimit ?? agentLimit);
  return Math.max(0, context_window - reserve);
}

/** The text of a request's parts beside the messages: tools and response format. */
const toolsAndFormatText = ({ tools, response_format }: ChatSettings): string =>
  (tools ? JSON.stringify(tools) : '') + (response_format ? formatJson(response_format) : '');

/** True if a request fits a model's context window; false if counting takes too long. */
export async function fitsContext(
  { counter }: TokenBudget,
  model: ModelInfo,
  {
    agent,
    actor,
    request,
  }: { agent: AgentRow; actor: { account_id: string }; request: ChatRequest },
): Promise<boolean> {
  const available = promptTokenLimit(model, agent);
  const messages: ChatMessage[] = [
    ...request.messages,
    { role: 'system', content: toolsAndFormatText(request) },
  ];
  if (maxTokens(messages) <= available) return true;
  if (promptMessageBytes(messages) > available * counter.longestToken) return false;
  const needed = await countMessages(counter, messages, actor.account_id, available).catch(
    (error: unknown) => {
      if (!isTurnlogError(error)) throw error;
      return Infinity;
    },
  );
  return needed <= available;
}

/**
 * Tokens left for earlier turns beside the instruction, the tools and the input. Throws
 * `invalid_request` if these alone exceed the model's context, and errors of the token counter.
 */
async function historyBudget(
  { counter }: TokenBudget,
  model: ModelInfo,
  settings: ChatSettings,
  { agent, input, actor }: RunRequest,
): Promise<number> {
  const available = promptTokenLimit(model, agent);
  const messages: ChatMessage[] = [
    { role: 'system', content: agent.instruction + toolsAndFormatText(settings) },
    { role: 'user', content: input },
  ];
  const upperBound = maxTokens(messages);
  if (upperBound <= available) return available - upperBound;
  const tooLong = promptMessageBytes(messages) > available * counter.longestToken;
  const needed = tooLong
    ? Infinity
    : await countMessages(counter, messages, actor.account_id, available);
  if (needed <= available) return available - needed;
  const message = `The input and the agent's instruction take more tokens than the ${available} that the model ${model.id} accepts.`;
  throw new TurnlogError('invalid_request', message, {
    details: { input: { message, path: '/input' } },
  });
}

/** The session of the turns, and the account that owns it. */
type TurnOwner = Pick<RunRequest, 'session_id'> & {
  actor: Pick<RunRequest['actor'], 'account_id'>;
};

/** The limits of the earlier turns in a prompt. */
export interface HistoryBudget {
  tokens: number;
  bytes: number;
  messages: number;
}

/**
 * The newest of `turns` (completed, oldest first) that together fit into the budget, oldest first.
 */
export async function newestTurnsThatFit(
  budget: TokenBudget,
  { tokens, bytes, messages }: HistoryBudget,
  owner: TurnOwner,
  turns: readonly Turn[],
): Promise<Turn[]> {
  const limit = Math.min(tokens, bytes);
  const most = maxMessages(turns);
  // No tokenizer in use produces more tokens than bytes, apart from the overhead of messages.
  if (most <= messages && bytesOfTurns(turns) + most * MESSAGE_OVERHEAD <= limit) return [...turns];
  let remainingTokens = tokens;
  let remainingBytes = bytes;
  let remainingMessages = messages;
  for (let index = turns.length - 1; index >= 0; index -= 1) {
    remainingMessages -= turnMessageLimit(turns[index]!);
    if (remainingMessages < 0) return turns.slice(index + 1);
    remainingBytes -= turnBytes(turns[index]!);
    if (remainingBytes < 0) return turns.slice(index + 1);
    remainingTokens -= await countTurn(budget, owner, turns[index]!);
    if (remainingTokens < 0) return turns.slice(index + 1);
  }
  return [...turns];
}

/**
 * Tokens that a summary leaves for the turns after it; undefined if it leaves less than half of
 * `tokens`, because the turns are then more useful than the summary.
 */
export async function tokensBesideSummary(
  budget: TokenBudget,
  tokens: number,
  owner: TurnOwner,
  summary: Summary,
): Promise<number | undefined> {
  const needed = await countOnce(budget, `${summary.session_id}/summary/${summary.revision}`, () =>
    countMessages(
      budget.counter,
      [{ role: 'system', content: systemText('', summary) }],
      owner.actor.account_id,
    ),
  );
  return needed <= tokens / 2 ? tokens - needed : undefined;
}

/** Tokens of turns in a prompt. */
export async function countTurns(
  budget: TokenBudget,
  owner: TurnOwner,
  turns: readonly Turn[],
): Promise<number> {
  let sum = 0;
  for (const turn of turns) sum += await countTurn(budget, owner, turn);
  return sum;
}

/** Counts once per key and caches the result. */
async function countOnce(
  { turnTokens }: TokenBudget,
  key: string,
  count: () => Promise<number>,
): Promise<number> {
  const counted = turnTokens.get(key) ?? (await count());
  turnTokens.set(key, counted);
  return counted;
}

const countTurn = (budget: TokenBudget, owner: TurnOwner, turn: Turn): Promise<number> =>
  countOnce(budget, `${owner.session_id}/${turn.turn}`, () =>
    countMessages(budget.counter, turnMessages(turn), owner.actor.account_id),
  );

/** The settings of the prompt, determined before the session is read. */
interface PromptPlan {
  settings: ChatSettings;
  /** Tokens left for earlier turns. */
  historyTokens: number;
}

async function chatSettingsFor(
  { models, toolbox }: AgentCatalogue,
  agent: AgentRow,
): Promise<ChatSettings> {
  const { upstream_model, max_output_tokens } = models.find(agent.model)!;
  const { temperature, max_output_tokens: agentLimit, response_format } = agent.parameters ?? {};
  // The registry may have changed since the agent was created.
  const limits = [agentLimit, max_output_tokens].filter((limit) => limit !== undefined);
  return {
    model: upstream_model,
    ...(limits.length > 0 && { max_completion_tokens: Math.min(...limits) }),
    ...(response_format && { response_format }),
    ...(temperature !== undefined && { temperature }),
    ...(agent.tool === null ? {} : { tools: await toolbox.definitions(agent.tool) }),
  };
}

export async function planPromptBudget(
  { catalogue, budget }: ModelContext,
  request: RunRequest,
): Promise<PromptPlan> {
  const { settings: recorded, promptTurns } = request.replay ?? {};
  const settings = recorded ?? (await chatSettingsFor(catalogue, request.agent));
  // A replay shows the recorded turns regardless of their size.
  if (promptTurns) return { settings, historyTokens: Infinity };
  const model = catalogue.models.find(request.agent.model)!;
  return { settings, historyTokens: await historyBudget(budget, model, settings, request) };
}
