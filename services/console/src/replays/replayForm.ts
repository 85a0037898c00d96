/** The form of a new replay as it is typed: texts by the names of the fields. */
export type ReplayForm = Readonly<Record<string, string>>;

/** The members whose value is not empty. */
const withoutEmpty = <Members extends object>(members: Members): Members =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== '' && value !== undefined),
  ) as Members;

const numberOf = (text: string | undefined): number | undefined =>
  text ? Number(text) : undefined;

/** The filter of the sessions; empty for all of them. */
export const filterOf = ({ filter_agent, q, label }: ReplayForm) =>
  withoutEmpty({
    agent_id: filter_agent,
    q: q?.trim(),
    label: label?.trim() ? [label.trim()] : undefined,
  });

/** The request of a form; undefined if its checks are not JSON. */
export function toReplayBody(form: ReplayForm): Record<string, unknown> | undefined {
  const sessions = form['sessions']?.split(/[\s,]+/).filter((id) => id !== '') ?? [];
  const filter = filterOf(form);
  const turns = withoutEmpty({ from: numberOf(form['from']), up_to: numberOf(form['up_to']) });
  const budget = numberOf(form['budget']);
  const { agent_id, model, instruction, tools = 'recorded', missing_tools = 'stop', checks } = form;
  try {
    return withoutEmpty({
      sessions: sessions.length > 0 ? [...new Set(sessions)] : undefined,
      filter: Object.keys(filter).length > 0 ? filter : undefined,
      agent_id,
      agent_revision: numberOf(form['agent_revision']),
      model,
      instruction,
      tools,
      missing_tools,
      turns: Object.keys(turns).length > 0 ? turns : undefined,
      concurrency: numberOf(form['concurrency']) ?? 1,
      budget: budget === undefined ? undefined : { tokens: budget },
      checks: checks?.trim() ? (JSON.parse(checks) as unknown) : undefined,
    });
  } catch {
    return undefined;
  }
}
