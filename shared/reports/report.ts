/** A session as one HTML page for people: what happened, who did it, what proves it. Pure. */
import { proofInvalidError } from '../lib/errors/turnlogError.ts';
import type { EventProof } from '../transparency/proof/proveEvent.ts';
import type { createStreamChecker } from '../transparency/proof/sessionChain.ts';
import { parseCheckpoint } from '../transparency/tlog/checkpoint.ts';
import { parseNote } from '../transparency/tlog/note.ts';
import { renderEventSection, formatInstant, START, type ReportedEvent } from './eventSection.ts';
import { html, htmlSlices, htmlText, type HtmlPiece } from '../lib/html.ts';
import { CONTENT_SECURITY_POLICY, STYLE } from './style.ts';

/** An agent as it was at a revision. */
export interface ReportedAgent {
  name: string;
  instruction: string;
}

export interface ReportSource {
  session_id: string;
  /** When the report is made: UTC, ISO 8601. */
  made_at: string;
  /** The proof of the last event. */
  proof: EventProof;
  /** The log's key, where the maker of the report knows it. */
  vkey?: string | undefined;
  /** The events up to the proven one, oldest first. */
  events: AsyncIterable<ReportedEvent>;
  /** Checks each event; counts what was seen. */
  checker: ReturnType<typeof createStreamChecker>;
  /** The agent of a turn; undefined when it was erased or is withheld. */
  findAgent: (agentId: string, revision: number) => Promise<ReportedAgent | undefined>;
}

const headOf = ({ session_id, made_at }: ReportSource): HtmlPiece =>
  html`<h1>Session report</h1>
    <p class="lead">
      Session <code>${session_id}</code>. Made ${formatInstant(made_at)}. All times are the
      service's own, in UTC.
    </p>
    <p>
      This page shows the recorded events of the session in their order: what was asked and
      answered, which tools were called, and who caused each event. Texts stand as they were
      recorded; characters that would be invisible are written as <code>\\u{…}</code>.
      <a href="#proof">What proves it</a> is at the end.
    </p>
    <h2>What happened</h2>`;

const opening = (source: ReportSource): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${htmlText(html`${CONTENT_SECURITY_POLICY}`)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Session report ${htmlText(html`${source.session_id}`)}</title>
<style>${STYLE}</style>
</head>
<body>
${htmlText(headOf(source))}
`;

const agentSection = (id: string, revision: number, agent: ReportedAgent | undefined): HtmlPiece =>
  html`<section class="event">
    <h3>The agent of the turns that follow</h3>
    <dl>
      <dt>Agent</dt>
      <dd>${id}, as it was at its revision ${revision}</dd>
      <dt>Name</dt>
      <dd><bdi>${agent?.name ?? 'not shown'}</bdi></dd>
    </dl>
    <h4>Its instruction at that time</h4>
    ${
      agent
        ? html`<pre dir="auto">${START}${agent.instruction}</pre>`
        : html`<p class="mark">Not shown: it was erased, or is withheld from this report.</p>`
    }
    <footer>
      The instruction is an event of the agent's own stream, which the proof below does not cover.
    </footer>
  </section>`;

/** The name and key id of each signature, since only holders of the keys can verify them. */
function signatureList(checkpoint: string): HtmlPiece {
  const note = parseNote(checkpoint);
  const { origin } = parseCheckpoint(note.text);
  return html`${note.signatures.map(
    ({ name, id }) =>
      html`<dt>${name === origin ? 'Signed by the log' : 'Cosigned by a witness'}</dt>
        <dd>${name}, key ${id}</dd>`,
  )}`;
}

function proofSection({ session_id, proof, vkey, checker: { seen } }: ReportSource): HtmlPiece {
  const { text } = parseNote(proof.checkpoint);
  const { origin, size, root } = parseCheckpoint(text);
  const key = vkey ?? '<the log’s key, as its operator publishes it>';
  return html`<h2 id="proof">What proves it</h2>
    <p>
      Each event has a hash, which covers the event, the hash of the event before it, and of each
      text a commitment. So the hash of the last event covers the whole session. It is an entry of a
      transparency log, an append-only list of the hashes of all events, whose state the service
      signs as a checkpoint.
    </p>
    <dl>
      <dt>Events</dt>
      <dd>${seen.events}</dd>
      <dt>Texts</dt>
      <dd>${seen.disclosed} shown, ${seen.redacted} redacted, ${seen.erased} erased</dd>
      <dt>Hash of the last event</dt>
      <dd><code>${proof.leaf.hash}</code></dd>
      <dt>Its leaf</dt>
      <dd>${proof.leaf.index}, in a tree of ${size} leaves</dd>
      <dt>Log</dt>
      <dd>${origin}</dd>
      <dt>Root of the tree</dt>
      <dd><code>${root.toString('base64')}</code></dd>
      <dt>Key</dt>
      <dd>${vkey ?? 'Not part of this page: the operator of the log publishes it'}</dd>
      ${signatureList(proof.checkpoint)}
    </dl>
    <p>
      This page is for reading; by itself it proves nothing, since anybody can write such a page.
      The bundle of the session proves it. Ask the operator for it, who makes it with
    </p>
    <pre>npm run cli -- audit export --session ${session_id} --out bundle.tar</pre>
    <p>and verify it on another machine, without the service, with</p>
    <pre>
npm run cli -- audit verify-bundle bundle.tar --vkey '${key}' --witness '${'<a witness that you trust>'}'</pre>
    <p>
      The bundle has the same events with the same hashes. Compare the hash of the last event with
      the one above. Take the key from where the log's operator publishes it, not from this page.
    </p>
    <h4>The checkpoint</h4>
    <pre>${proof.checkpoint}</pre>
    <h4>The proof of the last event (C2SP tlog-proof)</h4>
    <pre>${proof.proof}</pre>`;
}

/** The agent's revision in a turn or a summary. */
function revisionIn({ type, data }: ReportedEvent): number | undefined {
  if (type !== 'session.turn_started.v1') return undefined;
  return (data as { agent_revision: number }).agent_revision;
}

/** The page in pieces. Holds one event at a time. Throws `proof_invalid`. */
export async function* renderReport(source: ReportSource): AsyncGenerator<string> {
  yield opening(source);
  let agentId: string | undefined;
  let shownRevision: number | undefined;
  for await (const event of source.events) {
    const { index: _index, ...recorded } = event;
    const fault = source.checker.add(recorded);
    if (fault !== undefined)
      throw proofInvalidError(`The event at revision ${event.revision} does not fit: ${fault}.`);
    if (event.type === 'session.started.v1')
      agentId = (event.data as { agent_id: string }).agent_id;
    const revision = revisionIn(event);
    if (agentId !== undefined && revision !== undefined && revision !== shownRevision) {
      shownRevision = revision;
      const agent = await source.findAgent(agentId, revision);
      yield* htmlSlices(agentSection(agentId, revision, agent));
    }
    yield* htmlSlices(renderEventSection(event));
    yield '\n';
  }
  if (source.checker.seen.hash !== source.proof.leaf.hash)
    throw proofInvalidError('The events of the session do not lead to its proven event.');
  yield `${htmlText(proofSection(source))}\n</body>\n</html>\n`;
}
