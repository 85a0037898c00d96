import { agent, type AgentCommand, type AgentState } from './decider.ts';
import type { AgentParameters } from './parameters.ts';
import type { AgentConfiguration, AgentEvent } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { agentStream } from '../eventlog/streams.ts';
import { configurationColumns } from './projection.ts';
import { findOwnAgent } from './queries.ts';
import type { AgentRow } from '../readModels/tables.ts';
import { requireSupported, requireSupportedComponent, type AgentCatalogue } from './catalogue.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { toRecordedParameters, requireOutputTokens } from './validateParameters.ts';
import { answerable, buildConfiguration, type AgentInput } from './createAgent.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleResult } from '../commandHandling/handle.ts';
import { wholeStreamTarget, type LoadedStream } from '../commandHandling/targetStream.ts';

/** An agent that is to be changed. */
export interface ChangedAgent {
  agent_id: string;
  /** The revisions that the client knows; any will do when absent. */
  expected?: readonly number[] | undefined;
}

/** Fields that are to change; null takes one away, or back to its default. */
export type AgentPatch = {
  [Name in keyof AgentInput]?: AgentInput[Name] | null;
};

/** What a change makes of a configuration. */
type Change = (before: AgentConfiguration | undefined) => AgentCommand;

type Found = LoadedStream<AgentState>;

const configurationIn = ({ state }: Found): AgentConfiguration | undefined =>
  'configuration' in state ? state.configuration : undefined;

function requireExpected({ expected }: ChangedAgent, { head }: Found): void {
  if (!expected || expected.includes(head.revision)) return;
  throw new TurnlogError(
    'precondition_failed',
    `The agent is at revision ${head.revision}, and If-Match does not name that: its ETag stands there as it was answered, with its quotes. Read the agent again, and decide anew.`,
  );
}

interface Done {
  row: AgentRow;
  handled: HandleResult<Found>;
}

/** Decides on the newest revision, whatever the read models show; resolves once they show it, too. */
async function changed(
  context: CommandContext,
  actor: Actor,
  asked: ChangedAgent,
  change: Change,
): Promise<Done> {
  const { agent_id } = asked;
  const row = await findOwnAgent(context.readModels, actor.account_id, agent_id);
  const target = wholeStreamTarget<AgentCommand, AgentState, AgentEvent>(
    agentStream(agent_id),
    agent,
  );
  try {
    const handled = await handleLoaded(context, target, (found) => {
      requireExpected(asked, found);
      return { author: authorOf(actor), command: change(configurationIn(found)) };
    });
    if (handled.appended) await waitUntilVisible(context, handled.appended.position);
    return { row, handled };
  } catch (error) {
    throw answerable(error);
  }
}

async function configured(
  context: CommandContext,
  actor: Actor,
  asked: ChangedAgent,
  configure: (before: AgentConfiguration | undefined) => AgentConfiguration,
): Promise<AgentRow> {
  let configuration: AgentConfiguration | undefined;
  const { row, handled } = await changed(context, actor, asked, (before) => {
    configuration = configure(before);
    return { type: 'update_agent', configuration };
  });
  const { loaded, appended } = handled;
  return {
    ...row,
    ...(configuration && configurationColumns(configuration)),
    revision: appended?.head.revision ?? loaded.head.revision,
    updated_at: appended?.recorded_at ?? row.updated_at,
  };
}

type ChangeContext = CommandContext & { catalogue: AgentCatalogue };

/**
 * Gives an agent of the actor's account another configuration, whole; durable and shown when it
 * resolves. One that it has already records nothing.
 * Errors: `agent_not_found`, `agent_erased`, `precondition_failed`, `model_not_supported`,
 * `tool_not_supported`, `component_not_supported`, `payload_too_large`, and those of handle.
 */
export async function replaceAgent(
  context: ChangeContext,
  actor: Actor,
  asked: ChangedAgent,
  input: AgentInput,
): Promise<AgentRow> {
  const configuration = await buildConfiguration(context, actor, input);
  return configured(context, actor, asked, () => configuration);
}

const nullsOf = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value === null));
const withoutNulls = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  ) as {
    [Name in keyof Fields]?: NonNullable<Fields[Name]>;
  };

/**
 * Changes some of an agent's configuration (RFC 7396). Only what is named has to be on offer: what
 * the service does not have any more keeps nobody from changing the rest. Another model has to have
 * the tokens that the agent asks for.
 * Errors: those of replaceAgent.
 */
export async function patchAgent(
  context: ChangeContext,
  actor: Actor,
  asked: ChangedAgent,
  patch: AgentPatch,
): Promise<AgentRow> {
  const { catalogue } = context;
  requireSupported(catalogue, patch.model ?? undefined, patch.tool ?? undefined);
  const { temperature, max_output_tokens, response_format, compaction, ...others } = patch;
  const taken = { temperature, max_output_tokens, response_format };
  const asks = await toRecordedParameters(catalogue, withoutNulls(taken), actor.account_id);
  const named = {
    ...others,
    // None and false are the same: it is recorded where it is wanted.
    ...(compaction !== undefined && { compaction: compaction || null }),
    ...(patch.component !== undefined && {
      component: requireSupportedComponent(catalogue, patch.component ?? undefined),
    }),
  };
  const merged = (before: AgentConfiguration | undefined): AgentConfiguration => {
    const { parameters: known, ...fields } = before ?? {};
    const parameters: AgentParameters = withoutNulls({ ...known, ...nullsOf(taken), ...asks });
    const after = {
      ...withoutNulls({ ...fields, ...named }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
    } as AgentConfiguration;
    if (patch.model !== undefined || typeof max_output_tokens === 'number')
      requireOutputTokens(catalogue, after.model, parameters.max_output_tokens);
    return after;
  };
  return configured(context, actor, asked, merged);
}

/**
 * Deletes an agent: it is in no list and can't be run any more. Its events stay, and so do its
 * sessions.
 * Errors: `agent_not_found`, `agent_erased`, `precondition_failed`, and those of handle.
 */
export async function deleteAgent(
  context: CommandContext,
  actor: Actor,
  asked: ChangedAgent,
): Promise<{ agent_id: string; revision: number; deleted_at: string }> {
  const { handled } = await changed(context, actor, asked, () => ({ type: 'delete_agent' }));
  const { head, recorded_at } = handled.appended!;
  return { agent_id: asked.agent_id, revision: head.revision, deleted_at: recorded_at };
}
