/** Sessions as the formats write them, from events alone. */
import type { SessionEvent } from '../../../../shared/sessions/events.ts';
import { SESSION_WRITERS } from '../../../../shared/exports/formats.ts';
import { recordCollector, type ExportedTurn } from '../../../../shared/exports/record.ts';
import { at } from '../../builders/events.ts';

export const session = {
  session_id: 'session_1',
  agent_id: 'agent_1',
  title: null,
  labels: {},
  created_at: at(0),
};
export const agent = { name: 'Researcher', instruction: 'Answer briefly.' };

/** The turns of events, each recorded a second after the one before. */
export function turnsOf(...events: SessionEvent[]): ExportedTurn[] {
  const collect = recordCollector();
  return events.flatMap((event, second) => (collect(event, at(second)) as ExportedTurn) ?? []);
}

/** What a format makes of turns. */
export function written(
  format: keyof typeof SESSION_WRITERS,
  turns: readonly ExportedTurn[],
): string {
  const writer = SESSION_WRITERS[format](session);
  return [...turns.flatMap((turn) => [...writer.add(turn, agent)]), ...writer.end()].join('');
}
