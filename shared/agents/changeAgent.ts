import { agent, type AgentCommand, type AgentState } from './decider.ts';
import type { AgentParameters, RecordedResponseFormat } from './parameters.ts';
import type { AgentConfiguration, AgentEvent } from './events.ts';
import { agentStream } from '../eventlog/streams.ts';
import { mergePatch } from '../domain/mergePatch.ts';
import type { ChatResponseFormat } from '../sessions/turns/chat.ts';
import { parseFormat } from '../sessions/turns/requestBody.ts';
import { runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { configurationColumns } from './projection.ts';
import { findOwnAgent } from './queries.ts';
import type { AgentRow } from '../readModels/tables.ts';
import { requireSupported, type AgentCatalogue } from './catalogue.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import {
  requireCompilable,
  requireOutputTokens,
  requireUsableFormat,
  toRecordedFormat,
} from './validateParameters.ts';
import { toClientAgentError, buildConfiguration, type AgentInput } from './createAgent.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import { handleLoaded, requireRevision, type HandleResult } from '../commandHandling/handle.ts';
import { lastEventTarget, type LoadedLast } from '../commandHandling/targetStream.ts';

/** The agent to change. */
export interface ChangedAgent {
  agent_id: string;
  /** The revisions that the client accepts (If-Match); any if absent. */
  expected?: readonly number[] | undefined;
}

/** Fields to change; null removes one, or resets it to its default. */
export type AgentPatch = {
  [Name in keyof Omit<AgentInput, 'response_format'>]?: AgentInput[Name] | null;
} & {
  /** A merge patch of the format. */
  response_format?: { json_schema?: { schema?: object } | null } | null;
};

/** A patch, and the check of the response format that it results in. */
interface AgentChange {
  patch: AgentPatch;
  /** Throws `invalid_request` with the problems of a format. */
  checkFormat: (format: unknown) => ChatResponseFormat;
}

/** The command that changes a configuration. */
type ConfigurationChange = (before: AgentConfiguration | undefined) => Promise<AgentCommand>;

type LoadedAgent = LoadedLast<AgentState>;

const configurationIn = ({ state }: LoadedAgent): AgentConfiguration | undefined =>
  'configuration' in state ? state.configuration : undefined;

interface AppliedChange {
  row: AgentRow;
  handled: HandleResult<LoadedAgent>;
}

/** Decides on the newest revision in the log, and resolves when the read models show the change. */
async function applyChange(
  context: CommandContext,
  actor: Actor,
  target: ChangedAgent,
  change: ConfigurationChange,
): Promise<AppliedChange> {
  const { agent_id } = target;
  const row = await findOwnAgent(context.readModels, actor.account_id, agent_id);
  const stream = lastEventTarget<AgentCommand, AgentState, AgentEvent>(
    agentStream(agent_id),
    agent,
  );
  try {
    // One after the other, because concurrent changes would only conflict and be decided again.
    const lock = { owner: context.store, key: stream.stream, account_id: actor.account_id };
    const handled = await runExclusiveFairly(lock, () =>
      handleLoaded(context, stream, async (loaded) => {
        requireRevision(target.expected, loaded.head, 'agent');
        return { author: authorOf(actor), command: await change(configurationIn(loaded)) };
      }),
    );
    const { loaded, appended = loaded.last } = handled;
    // An equal change that another request has just made may not be visible yet.
    if (appended) await waitUntilVisible(context, appended.position);
    return { row, handled };
  } catch (error) {
    throw toClientAgentError(error);
  }
}

async function updateConfiguration(
  context: CommandContext,
  actor: Actor,
  target: ChangedAgent,
  configure: (before: AgentConfiguration | undefined) => Promise<AgentConfiguration>,
): Promise<AgentRow> {
  let configuration: AgentConfiguration | undefined;
  const { row, handled } = await applyChange(context, actor, target, async (before) => {
    configuration = await configure(before);
    return { type: 'update_agent', configuration };
  });
  const { loaded, appended } = handled;
  return {
    ...row,
    ...(configuration && configurationColumns(configuration)),
    revision: appended?.head.revision ?? loaded.head.revision,
    updated_at: (appended ?? loaded.last)!.recorded_at,
  };
}

type ChangeContext = CommandContext & { catalogue: AgentCatalogue };

/**
 * Replaces the configuration of an agent of the actor's account; durable and visible when it
 * resolves. An equal configuration records nothing. Errors: `agent_not_found`, `agent_erased`,
 * `precondition_failed`, `model_not_supported`, `tool_not_supported`, `payload_too_large`, and those
 * of handle.
 */
export async function replaceAgent(
  context: ChangeContext,
  actor: Actor,
  target: ChangedAgent,
  input: AgentInput,
): Promise<AgentRow> {
  const configuration = await buildConfiguration(context, actor, input);
  return updateConfiguration(context, actor, target, async () => configuration);
}

const withoutNulls = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  ) as {
    [Name in keyof Fields]?: NonNullable<Fields[Name]>;
  };

/**
 * Patches the configuration of an agent (RFC 7396). `checkFormat` checks the merged response format
 * of the newest revision, if the patch changes it. Only the fields of the patch must be supported:
 * a removed model or tool does not prevent other changes. A new model must support the agent's
 * output tokens. Errors: those of replaceAgent.
 */
export async function patchAgent(
  context: ChangeContext,
  actor: Actor,
  target: ChangedAgent,
  { patch, checkFormat }: AgentChange,
): Promise<AgentRow> {
  const { catalogue } = context;
  requireSupported(catalogue, patch.model ?? undefined, patch.tool ?? undefined);
  const { temperature, max_output_tokens, response_format, compaction, ...others } = patch;
  const fieldChanges = {
    ...others,
    // Only `true` is recorded: no compaction and false are the same.
    ...(compaction !== undefined && { compaction: compaction || null }),
    ...(patch.component !== undefined && {
      component: patch.component ?? catalogue.defaultComponent,
    }),
  };
  /** The format after the patch, as recorded. Its parsed schema is freed before the format is checked. */
  function mergeFormat(
    current: RecordedResponseFormat | undefined,
    change: NonNullable<AgentPatch['response_format']>,
  ): RecordedResponseFormat {
    // A schema that is nested too deep could not be merged.
    requireCompilable(change.json_schema?.schema ?? {});
    return toRecordedFormat(checkFormat(mergePatch(current && parseFormat(current), change)));
  }
  /** The same; only a changed format is checked. */
  async function patchFormat(
    current: RecordedResponseFormat | undefined,
  ): Promise<RecordedResponseFormat | null | undefined> {
    if (!response_format) return response_format === null ? null : current;
    const merged = mergeFormat(current, response_format);
    await requireUsableFormat(catalogue, merged, actor.account_id);
    return merged;
  }
  const configure = async (before: AgentConfiguration | undefined): Promise<AgentConfiguration> => {
    const { parameters: current, ...fields } = before ?? {};
    const parameters: AgentParameters = withoutNulls({
      ...current,
      ...(temperature !== undefined && { temperature }),
      ...(max_output_tokens !== undefined && { max_output_tokens }),
      response_format: await patchFormat(current?.response_format),
    });
    const after = {
      ...withoutNulls({ ...fields, ...fieldChanges }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
    } as AgentConfiguration;
    if (patch.model !== undefined || typeof max_output_tokens === 'number')
      requireOutputTokens(catalogue, after.model, parameters.max_output_tokens);
    return after;
  };
  return updateConfiguration(context, actor, target, configure);
}

/**
 * Deletes an agent: it is no longer listed and can't be run. Its events and sessions stay. Errors:
 * `agent_not_found`, `agent_erased`, `precondition_failed`, and those of handle.
 */
export async function deleteAgent(
  context: CommandContext,
  actor: Actor,
  target: ChangedAgent,
): Promise<{ agent_id: string; revision: number; deleted_at: string }> {
  const { handled } = await applyChange(context, actor, target, async () => ({
    type: 'delete_agent',
  }));
  const { head, recorded_at } = handled.appended!;
  return { agent_id: target.agent_id, revision: head.revision, deleted_at: recorded_at };
}
