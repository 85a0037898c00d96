import type { Command } from 'commander';
import type { TerminalContext, WithTerminal } from '../context.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { EXIT } from '../exitCodes.ts';
import { usageError } from '../failure.ts';
import { readTextFile } from '../textFile.ts';
import { createApiClient, type ApiClient } from './apiClient.ts';
import { watchReplay, type ReplaySummary } from './watchReplay.ts';

interface StartOptions {
  session?: string[];
  label?: string[];
  agent?: string;
  all?: boolean;
  model?: string;
  instructionFile?: string;
  withAgent?: string;
  agentRevision?: string;
  tools: string;
  missingTools?: string;
  from?: string;
  upTo?: string;
  concurrency?: string;
  budget?: string;
  checks?: string;
  watch?: boolean;
}

const openClient = ({ env, signal }: TerminalContext): ApiClient => createApiClient(env, signal);

function integer(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usageError(`--${name} must be a number.`);
  return Number(text);
}

/** Rejects empty values, such as an unset variable of a script: ignored, they would widen the selection. */
function requireNonEmptyOptions(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    const option = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if ([value].flat().includes('')) throw usageError(`--${option} must not be empty.`);
  }
}

async function readInputFile(file: string): Promise<string> {
  try {
    return await readTextFile(file);
  } catch (error) {
    throw usageError((error as Error).message);
  }
}

async function readChecks(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readInputFile(file));
  } catch (error) {
    if (error instanceof SyntaxError) throw usageError(`${file} is not JSON.`);
    throw error;
  }
}

/** Builds the body of the request; the service validates its values. */
async function buildRequest(options: StartOptions): Promise<object> {
  requireNonEmptyOptions(options);
  const { session, label, agent, all, from, upTo, concurrency, agentRevision } = options;
  // A forgotten selection must not replay everything.
  if (!session && !label && !agent && !all)
    throw usageError('Select what to replay with --session, --label, --agent or --all.');
  const filter = { ...(label && { label }), ...(agent && { agent_id: agent }) };
  return {
    ...(session && { sessions: session }),
    ...(Object.keys(filter).length > 0 && { filter }),
    ...(options.model && { model: options.model }),
    ...(options.instructionFile && { instruction: await readInputFile(options.instructionFile) }),
    ...(options.withAgent && { agent_id: options.withAgent }),
    ...(agentRevision && { agent_revision: integer('agent-revision', agentRevision) }),
    tools: options.tools,
    ...(options.missingTools && { missing_tools: options.missingTools }),
    ...((from || upTo) && {
      turns: {
        ...(from && { from: integer('from', from) }),
        ...(upTo && { up_to: integer('up-to', upTo) }),
      },
    }),
    ...(concurrency && { concurrency: integer('concurrency', concurrency) }),
    ...(options.budget && { budget: { tokens: integer('budget', options.budget) } }),
    ...(options.checks && { checks: await readChecks(options.checks) }),
  };
}

type ListedReplay = ReplaySummary & { created_at: string };

interface ListOptions {
  limit: string;
  after?: string;
}

type ReplayWithTurns = ReplaySummary & { settings: { checks?: unknown[] }; turns: object[] };

/**
 * Whether a replay is worse than the recording: turns failed or were not run, checks failed, or,
 * without checks, outputs changed. Null if that is undecided: the replay is running, no turn was
 * compared, or no check applied.
 */
function isRegressed({ status, sums, settings }: ReplayWithTurns): boolean | null {
  const { turns, sessions, checks } = sums;
  if (status === 'running') return null;
  if (status !== 'completed' || turns.failed + sessions.failed + sessions.stopped > 0) return true;
  if (turns.same + turns.changed === 0) return null;
  if (!settings.checks) return turns.changed > 0;
  return checks.passed + checks.failed === 0 ? null : checks.failed > 0;
}

const describeReplay = ({ status, sums: { turns, sessions, checks } }: ReplaySummary): string =>
  `${status}: ${turns.same} same, ${turns.changed} changed, ${turns.failed} failed, ${turns.skipped} skipped of ${turns.total} turns; ` +
  `${sessions.failed + sessions.stopped} of ${sessions.total} sessions failed or stopped; ` +
  `${checks.failed} of ${checks.passed + checks.failed} checks failed`;

/** Shows a replay; the exit code says whether it is worse than the recording. */
async function show(
  { output, exitWith }: TerminalContext,
  client: ApiClient,
  id: string,
  only?: string,
): Promise<void> {
  const query = only === undefined ? '' : `?only=${encodeURIComponent(only)}`;
  const path = `/v1/replays/${encodeURIComponent(id)}`;
  const replay = await client.request<ReplayWithTurns>('GET', path + query);
  const regressed = isRegressed(replay);
  output.show({ ...replay, regressed }, `${id} ${describeReplay(replay)}`);
  if (regressed !== false) exitWith(regressed ? EXIT.failed : EXIT.undecided);
}

async function watch(terminal: TerminalContext, client: ApiClient, id: string): Promise<void> {
  const { progress, signal } = terminal;
  await watchReplay(
    client,
    encodeURIComponent(id),
    (replay) => progress.update(() => describeReplay(replay)),
    signal,
  );
  progress.end(id);
  await show(terminal, client, id);
}

async function start(terminal: TerminalContext, options: StartOptions): Promise<void> {
  const client = openClient(terminal);
  const body = await buildRequest(options);
  const { replay_id } = await client.request<{ replay_id: string }>('POST', '/v1/replays', body);
  // Shown first: needed to watch again, or to cancel, after an interruption.
  if (options.watch) terminal.notice({ replay_id }, replay_id);
  if (options.watch) await watch(terminal, client, replay_id);
  else terminal.output.show({ replay_id }, replay_id);
}

/** Lists the newest replays of the account. */
async function list({ output, ...terminal }: TerminalContext, options: ListOptions): Promise<void> {
  requireNonEmptyOptions(options);
  const query = new URLSearchParams(options.after ? { after: options.after } : {});
  query.set('limit', String(integer('limit', options.limit)));
  const client = openClient({ output, ...terminal });
  const rows = await client.request<ListedReplay[]>('GET', `/v1/replays?${query.toString()}`);
  output.table(rows, {
    REPLAY: ({ replay_id }) => replay_id,
    CREATED: ({ created_at }) => created_at,
    RESULT: describeReplay,
  });
}

/** `replay start`, `list`, `watch`, `show`: clients of a running service. */
export function addReplayCommands(program: Command, run: WithTerminal): void {
  const replay = program
    .command('replay')
    .description(
      'run recorded sessions again, and compare; a client of the service at TURNLOG_URL, with the key TURNLOG_API_KEY. The exit code is 1 where a turn failed, a check did not pass, or, without checks, an output changed; 3 where it still runs, or nothing was compared',
    );
  replay
    .command('start')
    .description('start a replay')
    .option('--session <id...>', 'the sessions')
    .option('--label <name:value...>', 'and all sessions with these labels')
    .option('--agent <id>', 'and all sessions of this agent')
    .option('--all', 'all sessions, where none of the others is given')
    .option('--model <id>', 'answers in place of the recorded models')
    .option('--instruction-file <file>', "in place of the agent's instruction")
    .option('--with-agent <id>', "runs in place of the sessions' own agents")
    .option('--agent-revision <n>', 'the revision of that agent, or of the own ones')
    .option('--tools <recorded|live>', 'where the results of tools come from', 'recorded')
    .option('--missing-tools <stop|live|error-result>', 'what becomes of a call without a record')
    .option('--from <turn>', 'the first turn')
    .option('--up-to <turn>', 'the last turn')
    .option('--concurrency <n>', 'sessions at a time')
    .option(
      '--budget <tokens>',
      `no turn is begun, and no judge asked, once so many were used (default: ${LIMITS.replays.defaultBudgetTokens})`,
    )
    .option('--checks <file>', 'the checks, as a JSON list')
    .option('--watch', 'wait for its end')
    .action((options: StartOptions) => run((terminal) => start(terminal, options)));
  replay
    .command('list')
    .description('list the replays of the account, newest first')
    .option('--limit <n>', 'the most replays to list', '100')
    .option('--after <replay_id>', 'continue after this replay')
    .action((options: ListOptions) => run((terminal) => list(terminal, options)));
  replay
    .command('watch')
    .description('follow a replay to its end; it may be interrupted, and watched again')
    .argument('<replay_id>')
    .action((id: string) => run((terminal) => watch(terminal, openClient(terminal), id)));
  replay
    .command('show')
    .description('show a replay and its first turns')
    .argument('<replay_id>')
    .option('--only <outcome>', 'only turns that are same, changed, failed, skipped, checks_failed')
    .action((id: string, { only }: { only?: string }) =>
      run((terminal) => show(terminal, openClient(terminal), id, only)),
    );
}
