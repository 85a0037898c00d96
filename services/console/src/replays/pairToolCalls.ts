/** What of a tool call is compared. */
export interface ComparableCall {
  round: number;
  tool: string;
  arguments: string;
  result: string;
}

/** A recorded call beside its replay; one of them is missing where only the other turn called. */
export interface CallPair<Call> {
  recorded?: Call;
  replayed?: Call;
}

/**
 * Pairs the tool calls of a turn with those of its replay: calls of the same round and tool, first
 * those with equal arguments. The order is that of the recorded calls; added ones follow.
 */
export function pairToolCalls<Call extends ComparableCall>(
  recorded: readonly Call[],
  replayed: readonly Call[],
): CallPair<Call>[] {
  const left = new Set(replayed);
  const partners = new Map<Call, Call>();
  for (const areEqual of [
    (one: Call, other: Call) => one.arguments === other.arguments,
    () => true,
  ])
    for (const call of recorded) {
      if (partners.has(call)) continue;
      const partner = [...left].find(
        (other) => other.round === call.round && other.tool === call.tool && areEqual(call, other),
      );
      if (!partner) continue;
      partners.set(call, partner);
      left.delete(partner);
    }
  return [
    ...recorded.map((call) => {
      const partner = partners.get(call);
      return { recorded: call, ...(partner && { replayed: partner }) };
    }),
    ...[...left].map((call) => ({ replayed: call })),
  ];
}
