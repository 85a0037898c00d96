/** How a report shows an event. */
import type { ShownEvent, ShownText } from '../transparency/proof/shownTexts.ts';
import { html, type HtmlPiece } from '../lib/html.ts';

/** An event of a session as a report shows it. */
export interface ReportedEvent extends ShownEvent {
  /** The index of its leaf in the transparency log. */
  index: number;
}

/** HTML drops a line break at the beginning of `pre`, which may be the text's own. */
export const START = '\n';

type Data = Readonly<Record<string, unknown>>;

/** An instant, which events hold in UTC and ISO 8601, as people read it. */
export const formatInstant = (iso: string): string =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(iso)
    ? `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`
    : iso;

const isText = (value: unknown): value is ShownText =>
  typeof value === 'object' && value !== null && 'sha256' in value;

/** A value as text; JSON where it is none. */
const plain = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** A text, or a mark in place of one that is not disclosed. */
function shownText(value: unknown): HtmlPiece {
  if (!isText(value)) return html`<pre dir="auto">${START}${plain(value)}</pre>`;
  const { sha256, text, erased } = value;
  if (text !== undefined) return html`<pre dir="auto">${START}${text}</pre>`;
  return html`<p class="mark">
    ${erased ? 'Erased: its key was destroyed, and the text is gone.' : 'Redacted: withheld from this report.'}
    Its commitment is <code>${sha256}</code>.
  </p>`;
}

const field = (label: string, value: unknown): HtmlPiece =>
  value === undefined
    ? html``
    : html`<h4>${label}</h4>
        ${shownText(value)}`;

const facts = (entries: readonly (readonly [string, unknown])[]): HtmlPiece =>
  html`<dl>
    ${entries.map(([name, value]) =>
      value === undefined || value === ''
        ? html``
        : html`<dt>${name}</dt>
            <dd>${plain(value)}</dd>`,
    )}
  </dl>`;

const labelled = (labels: unknown): HtmlPiece[] =>
  Array.isArray(labels)
    ? labels.flatMap(({ name, value }: { name: unknown; value: unknown }) => [
        field('Label', name),
        field('Its value', value),
      ])
    : [];

/** A heading, and what the event says. */
function contentOf({ type, data: all }: ShownEvent): [string, HtmlPiece] {
  const data = all as Data;
  const { turn } = data as { turn?: number };
  const ofTurn = `Turn ${turn}`;
  switch (type) {
    case 'session.started.v1':
      return [
        'The session began',
        html`${facts([
          ['Agent', data['agent_id']],
          ['Forked from', data['forked_from']],
          ['Made by a replay', data['replay']],
        ])}${field("Instruction in place of the agent's", data['instruction'])}`,
      ];
    case 'session.turn_started.v1':
      return [
        `${ofTurn}: the input`,
        html`${field('Input', data['input'])}${facts([
          ['Model', data['model']],
          ['Revision of the agent', data['agent_revision']],
        ])}`,
      ];
    case 'session.tool_called.v1':
      return [
        `${ofTurn}: a tool was called`,
        html`${field('The model wrote', data['content'])}${field('Tool', data['tool'])}${facts([
          ['Failed', data['is_error'] === true ? 'yes' : undefined],
          ['Took', `${plain(data['duration_ms'])} ms`],
        ])}${field('Arguments', data['arguments'])}${field('Result', data['result'])}`,
      ];
    case 'session.turn_completed.v1':
      return [
        `${ofTurn}: the output`,
        html`${field('Output', data['output'])}${facts([
          ['Model, as the provider named it', data['model']],
          ['Ended because of', data['finish_reason']],
          ['Took', `${plain(data['duration_ms'])} ms`],
        ])}`,
      ];
    case 'session.turn_failed.v1':
      return [
        `${ofTurn}: it failed`,
        html`${facts([['Code', data['code']]])}${field('Message', data['message'])}${field(
          'Output',
          data['output'],
        )}`,
      ];
    case 'session.turn_interrupted.v1':
      return [
        `${ofTurn}: it was interrupted`,
        facts([['Reason', data['cause'] ?? data['reason']]]),
      ];
    case 'session.compacted.v1':
      return [
        `Turns ${plain(data['from_turn'])} to ${plain(data['up_to_turn'])} were summarised for later prompts`,
        field('Summary', data['summary']),
      ];
    case 'session.described.v1':
      return [
        'The session was given a title or labels',
        html`${field('Title', data['title'])}${labelled(data['labels'])}`,
      ];
    case 'session.erased.v1':
      return [
        'The texts of the session were erased',
        facts([
          ['Reason', data['reason']],
          ['Note', data['note']],
        ]),
      ];
    default:
      return [`An event of the type ${type}`, html`<pre>${JSON.stringify(data, null, 2)}</pre>`];
  }
}

/** An event with who recorded it, when, and where it stands. */
export function renderEventSection(event: ReportedEvent): HtmlPiece {
  const [heading, content] = contentOf(event);
  const { key_id, account_id, recorded_at, hash } = event.metadata;
  return html`<section class="event">
    <h3>${heading}</h3>
    ${content}
    <footer>
      ${formatInstant(recorded_at)} · by key ${key_id} of account ${account_id}<br />
      event ${event.revision}, <code>${event.id}</code> · leaf ${event.index} · hash
      <code>${hash}</code>
    </footer>
  </section>`;
}
