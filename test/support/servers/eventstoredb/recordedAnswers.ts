/**
 * What may differ between two runs of `eventstoredb-node/records/record.mjs` on one server, put in
 * words that are the same for both. Each rule names the place that it holds for; everything else is
 * compared as it was said.
 */

const SUCCESS = /^ {4}success revision 2 =dup-\d@2$/;
const TIMEOUT =
  /^ {4}error event_store\.client\.Timeout code 4 "Timeout" \{\} after about (2|2\.5|3) s$/;

type Rule = (lines: string[]) => string[];

/** A block of a scenario: the line that names it, and what was said, indented. */
function inBlocks(isNamed: (name: string) => boolean, rule: Rule): Rule {
  return (lines) => {
    const out: string[] = [];
    for (let at = 0; at < lines.length;) {
      const name = lines[at++]!;
      out.push(name);
      let end = at;
      while (lines[end]?.startsWith('    ')) end += 1;
      out.push(...(isNamed(name) ? rule(lines.slice(at, end)) : lines.slice(at, end)));
      at = end;
    }
    return out;
  };
}

/**
 * Which copies of an append in flight are told of its success and which time out is chance; one is
 * told.
 */
const copies = inBlocks(
  (name) => /^\d copies:$/.test(name),
  (lines) => {
    const known = lines.every((line) => SUCCESS.test(line) || TIMEOUT.test(line));
    const told = lines.some((line) => SUCCESS.test(line));
    return known && told ? [`    ${lines.length} answers, of success or time-outs`] : lines;
  },
);

/** Of seven copies in flight some time out, on every server. */
const timeouts: Rule = (lines) => {
  const timedOut = lines.some((line) => TIMEOUT.test(line));
  return [...lines, `copies that timed out: ${timedOut ? 'some' : 'none'}`];
};

/**
 * An answer that took about a second came from a busy machine; servers take two where they wait for
 * something.
 */
const busyMachine: Rule = (lines) =>
  lines.map((line) => line.replace(/ after about (1|1\.5) s$/, ''));

/** A page is 32 events; 3,000 events behind a gap are read in 94 pages with a checkpoint each. */
const PAGE = 32;
const PAGES = 94;

/** What a slow consumer got before the gap: nothing, or some events of the first append. */
const BEFORE_GAP =
  /^ {4}(checkpoint =|\d+ × event slow-0@0 happened >behind-400@99 … event slow-0@\d+ happened >)behind-400@99$/;
const BETWEEN = /^ {4}… (\d+) events, (\d+) checkpoints between them …$/;

/**
 * A slow consumer that is caught up again, from 24 on: when it is found slow, and how often it is
 * told `caught_up`.
 */
function caughtUpAgain(lines: string[]): string[] {
  const [first = '', between = '', ...rest] = lines;
  const [, events = 0, checkpoints = 0] = (BETWEEN.exec(between) ?? []).map(Number);
  const told = rest.filter((line) => line === '    also caught_up').length;
  const usualCheckpoints = checkpoints >= PAGES && checkpoints <= PAGES + 4 * told;
  const isUsual = BEFORE_GAP.test(first) && events === 3000 && usualCheckpoints;
  if (!isUsual || told === 0 || rest.length !== told + 1) return lines;
  return [
    '    nothing or some events; 3000 events in all, a checkpoint each page; caught_up',
    rest.at(-1)!,
  ];
}

/**
 * A slow consumer that is ended, in 23.10: after how many events, with a checkpoint for each 32 of
 * them.
 */
function ended(lines: string[]): string[] {
  const [, events = 0, checkpoints] = (BETWEEN.exec(lines[1] ?? '') ?? []).map(Number);
  const isUsual = events > 2 * PAGE && events < 1000 && checkpoints === Math.floor(events / PAGE);
  return isUsual
    ? [lines[0]!, '    more events, a checkpoint each page', ...lines.slice(2)]
    : lines;
}

const slowConsumer = inBlocks(
  (name) => name === 'said when it takes again:',
  (lines) => (lines.at(-1)?.startsWith('    status ABORTED') ? ended(lines) : caughtUpAgain(lines)),
);

/**
 * Where the checkpoints of live traffic fall depends on what a server writes itself: three or four
 * to an append of 100.
 */
const LIVE_CHECKPOINTS = /^( {4}checkpoint >live\w+-\d+@\d+) \([34]\)$/;
const liveCheckpoints: Rule = (lines) =>
  lines.map((line) => line.replace(LIVE_CHECKPOINTS, '$1 (3 or 4)'));

/** Servers that were built from source say so. */
const build: Rule = (lines) =>
  lines.map((line) => line.replace(/^( {4}\d+\.\d+\.\d+)(-\S+)?$/, '$1'));

const normalised = (text: string, rules: readonly Rule[]): string[] =>
  rules.reduce((lines, rule) => rule(lines), text.trim().split('\n'));

const OF_EVERY_SERVER = [busyMachine, timeouts, copies, slowConsumer];

/** What the node said, which leaves less to chance than a real server. */
export const ofNode = (text: string): string[] => normalised(text, OF_EVERY_SERVER);

export const ofServer = (text: string): string[] =>
  normalised(text, [...OF_EVERY_SERVER, liveCheckpoints, build]);

/** The first part of a record of refusals: one node with TLS. */
export const ofOneNode = (text: string): string[] =>
  text
    .split('## three nodes')[0]!
    .trim()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('##'));

/** The second part: three nodes without TLS, of which two are ended. */
export const ofThreeNodes = (text: string): string[] =>
  normalised(text.slice(Math.max(0, text.indexOf('# the leader'))), [busyMachine]);
