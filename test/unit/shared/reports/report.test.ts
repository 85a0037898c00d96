import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { ReportedEvent } from '../../../../shared/reports/eventSection.ts';
import { renderReport, type ReportedAgent } from '../../../../shared/reports/report.ts';
import { createStreamChecker } from '../../../../shared/transparency/proof/sessionChain.ts';
import { shownEventHash } from '../../../../shared/transparency/proof/shownTexts.ts';
import { commitText } from '../../../../shared/eventlog/encryption/protectedText.ts';
import { GENESIS_HASH } from '../../../../shared/eventlog/hashChain.ts';
import { SLICE_CHARS } from '../../../../shared/lib/slices.ts';
import { formatCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../../../shared/transparency/tlog/noteKeys.ts';
import { formatProof } from '../../../../shared/transparency/tlog/proofFile.ts';

const SESSION = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
const signer = noteSigner('example.com/log', generateKeyPairSync('ed25519').privateKey);
const text = (value: string) => ({ ...commitText(value) });

/** Chained events of these types and data. */
function eventsOf(...contents: [string, object][]): ReportedEvent[] {
  let prev_hash = GENESIS_HASH;
  return contents.map(([type, data], revision) => {
    const metadata = {
      account_id: 'acct_1',
      key_id: 'key_1',
      request_id: 'request_1',
      causation_id: 'request_1',
      recorded_at: '2026-01-02T03:04:05.678Z',
      prev_hash,
      hash: '',
    };
    const event = {
      id: `id-${revision}`,
      stream: `session-${SESSION}`,
      revision,
      type,
      data,
      metadata,
    };
    prev_hash = shownEventHash(event);
    return { ...event, metadata: { ...metadata, hash: prev_hash }, index: 40 + revision };
  });
}

async function piecesOf(
  events: ReportedEvent[],
  agent: ReportedAgent | null = { name: 'Helper', instruction: 'Be brief.' },
): Promise<string[]> {
  const pieces: string[] = [];
  const hash = events.at(-1)!.metadata.hash;
  const checkpoint = signNote(
    formatCheckpoint({ origin: 'example.com/log', size: 50, root: Buffer.alloc(32) }),
    [signer],
  );
  const proof = formatProof({ index: 49, hashes: [], checkpoint });
  for await (const piece of renderReport({
    session_id: SESSION,
    made_at: '2026-02-03T04:05:06.789Z',
    proof: { leaf: { hash, index: 49 }, proof, checkpoint },
    events: (async function* () {
      yield* events;
    })(),
    checker: createStreamChecker(`session-${SESSION}`),
    findAgent: async () => agent ?? undefined,
  }))
    pieces.push(piece);
  return pieces;
}

const pageOf = async (...args: Parameters<typeof piecesOf>): Promise<string> =>
  (await piecesOf(...args)).join('');

const settings = {};
const turn = (wrap: (value: string) => unknown, value: string): [string, object][] => [
  ['session.started.v1', { agent_id: 'agent_1', instruction: wrap(value) }],
  [
    'session.turn_started.v1',
    { turn: 1, input: wrap(value), agent_revision: 0, model: value, settings },
  ],
  [
    'session.tool_called.v1',
    {
      turn: 1,
      round: 1,
      call_id: value,
      tool: value,
      arguments: wrap(value),
      content: wrap(value),
      result: wrap(value),
      is_error: true,
      duration_ms: 3,
    },
  ],
  [
    'session.turn_completed.v1',
    { turn: 1, output: wrap(value), model: value, finish_reason: value, duration_ms: 4, calls: [] },
  ],
  ['session.turn_failed.v1', { turn: 2, code: value, message: wrap(value), output: wrap(value) }],
  ['session.turn_interrupted.v1', { turn: 3, reason: value }],
  ['session.compacted.v1', { from_turn: 1, up_to_turn: 2, summary: wrap(value) }],
  [
    'session.described.v1',
    { title: wrap(value), labels: [{ name: wrap(value), value: wrap(value) }] },
  ],
  [`session.of_a_later_release.v1`, { anything: { [value]: [value] } }],
  ['session.erased.v1', { reason: value, note: value, key_ids: [] }],
];

/** What a browser takes for markup, in order. */
const markupIn = (page: string): string[] => page.match(/<[^>]*>/g)!;

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '</pre></section></body></html><iframe src=//evil.example>',
  '</style><style>@import "//evil.example"</style>',
  '<!-- <svg/onload=alert(1)> -->',
  ']]><a href="javascript:alert(1)">x</a>',
  '&lt;script&gt; &#60;script&#62;',
];

describe('a report', () => {
  test.each(HOSTILE)('has the same markup whatever its texts are: %s', async (hostile) => {
    for (const wrap of [text, (value: string) => value]) {
      const [benign, attacked] = await Promise.all([
        pageOf(eventsOf(...turn(wrap, 'benign'))),
        pageOf(eventsOf(...turn(wrap, hostile)), { name: hostile, instruction: hostile }),
      ]);
      expect(markupIn(attacked)).toEqual(markupIn(benign));
    }
  });

  test('has no script, no reference but to itself, and a policy that forbids both', async () => {
    const page = await pageOf(eventsOf(...turn(text, 'https://example.com/ is a text')));
    const markup = markupIn(page).join('\n');
    expect(markup).not.toMatch(/<(script|link|img|iframe|object|embed|form|base|svg)\b/i);
    expect(markup).not.toMatch(/\son\w+\s*=|\ssrc\s*=|href="(?!#)/i);
    expect(page.match(/<style>[^]*<\/style>/)![0]).not.toMatch(/url\(|@import/);
    expect(page).toMatch(
      /http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;sha256-[\w+/=]{44}&#39;; base-uri/,
    );
    expect(page).toMatch(/^<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">/);
  });

  test('comes in short pieces, however long its texts are', async () => {
    const long = '\u00ad'.repeat(250_000);
    const pieces = await piecesOf(eventsOf(...turn(text, long).slice(0, 2)), {
      name: 'a',
      instruction: long,
    });
    expect(pieces.join('').includes('\\u{00AD}'.repeat(250_000))).toBe(true);
    for (const { length } of pieces) expect(length).toBeLessThanOrEqual(9 * SLICE_CHARS);
  });

  test('ends the section of each event with one line break', async () => {
    const events = eventsOf(...turn(text, 'a text'));
    const ends = (await pageOf(events)).match(/(?<=<\/section>)\s+/g);
    expect(ends).toEqual(events.map(() => '\n'));
  });

  test('says what happened, who did it and what proves it', async () => {
    const events = eventsOf(...turn(text, 'a text'));
    const page = await pageOf(events);
    for (const { metadata, index } of events) {
      expect(page).toContain(metadata.hash);
      expect(page).toContain(`leaf ${index}`);
    }
    for (const said of [
      'by key key_1 of account acct_1',
      '2026-01-02 03:04:05.678 UTC',
      'Be brief.',
      'example.com/log',
      `audit export --session ${SESSION} --out bundle.tar`,
      'audit verify-bundle bundle.tar --vkey',
    ])
      expect(page).toContain(said);
  });

  test('marks texts that are redacted or erased', async () => {
    const { sha256 } = commitText('gone');
    const page = await pageOf(
      eventsOf(
        ['session.started.v1', { agent_id: 'agent_1' }],
        [
          'session.turn_started.v1',
          { turn: 1, input: { sha256 }, agent_revision: 0, model: 'm', settings },
        ],
        ['session.turn_completed.v1', { turn: 1, output: { sha256, erased: true }, calls: [] }],
      ),
      null,
    );
    expect(page).toContain('Redacted: withheld from this report.');
    expect(page).toContain('Erased: its key was destroyed');
    expect(page).toContain('Not shown: it was erased, or is withheld');
    expect(page).toContain('0 shown, 1 redacted, 1 erased');
  });

  test('breaks off at an event that does not fit', async () => {
    const events = eventsOf(...turn(text, 'a text'));
    (events[3]!.data as { model: string }).model = 'another';
    await expect(pageOf(events)).rejects.toMatchObject({ code: 'proof_invalid' });
  });
});
