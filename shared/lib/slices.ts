/** Long texts and large JSON values in slices, so that no step of the event loop writes all of one. */
import { KIB } from './units.ts';

/** Escaped as JSON or HTML, a slice takes a fraction of a millisecond. */
export const SLICE_CHARS = 8 * KIB;

/** A text in slices that split no character. */
export function* textSlices(text: string): Generator<string> {
  for (let from = 0, to; from < text.length; from = to) {
    to = Math.min(from + SLICE_CHARS, text.length);
    if (to < text.length && (text.codePointAt(to - 1) ?? 0) > 0xffff) to -= 1;
    yield text.slice(from, to);
  }
}

/** Joins small pieces to slices. An empty piece ends a slice, which may be empty, too. */
export function* joinToSlices(pieces: Iterable<string>): Generator<string> {
  let slice = '';
  for (const piece of pieces) {
    slice += piece;
    if (piece !== '' && slice.length < SLICE_CHARS) continue;
    yield slice;
    slice = '';
  }
  if (slice !== '') yield slice;
}

/** The characters within the quotes of a JSON string. */
const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** The JSON of a text in slices. */
export function* textAsJson(text: string): Generator<string> {
  yield '"';
  for (const slice of textSlices(text)) yield escapeJson(slice);
  yield '"';
}

/**
 * Stands for a value that is kept as text, and made each time it is written: parsed JSON may take twenty
 * times the memory of its text.
 */
export class DeferredJson {
  readonly value: () => unknown;
  /** The JSON of the value, its members in their own order. */
  readonly text: () => string;

  constructor(value: () => unknown, text: () => string) {
    this.value = value;
    this.text = text;
  }
}

const NESTED = Symbol('NESTED');

/** Stands for a string that contains the JSON of a value. */
export const nestedJson = (value: unknown): object => ({ [NESTED]: value });

const isNested = (value: object): value is { [NESTED]: unknown } => NESTED in value;

/** Approximate characters that separate a value from the next one. */
const SEPARATOR_CHARS = 4;

/** The characters left of a budget after the JSON of a value; negative if it may take more. */
function charsLeft(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length;
  if (typeof value === 'function') return -1;
  if (typeof value !== 'object' || value === null) return budget - SEPARATOR_CHARS;
  if (value instanceof DeferredJson || isNested(value)) return -1;
  let remaining = budget;
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) {
    remaining = charsLeft(members[name], remaining - name.length - SEPARATOR_CHARS);
    if (remaining < 0) break;
  }
  return remaining;
}

/** The JSON of a list or object. Short members are written together, which is several times faster. */
function* memberPieces(value: object): Generator<string> {
  const isList = Array.isArray(value);
  let before = isList ? '[' : '{';
  let short: [string, unknown][] = [];
  let remainingChars = SLICE_CHARS;
  function* shortPieces(): Generator<string> {
    if (short.length === 0) return;
    const members = isList ? short.map(([, member]) => member) : Object.fromEntries(short);
    yield before + JSON.stringify(members).slice(1, -1);
    before = ',';
    short = [];
    remainingChars = SLICE_CHARS;
  }
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    if (member === undefined && !isList) continue;
    const chars = SLICE_CHARS - charsLeft(member, SLICE_CHARS) + name.length + SEPARATOR_CHARS;
    if (chars > remainingChars) yield* shortPieces();
    if (chars <= remainingChars) {
      short.push([name, member]);
      remainingChars -= chars;
      continue;
    }
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    before = ',';
    yield* jsonPieces(member);
  }
  yield* shortPieces();
  if (before !== ',') yield before;
  yield isList ? ']' : '}';
}

function* jsonPieces(value: unknown): Generator<string> {
  if (typeof value === 'function') {
    // Ends the slice: making the value may take long, however short its JSON is.
    yield '';
    yield* jsonPieces((value as () => unknown)());
  } else if (value instanceof DeferredJson) yield* jsonPieces(value.value);
  else if (charsLeft(value, SLICE_CHARS) >= 0) yield JSON.stringify(value);
  else if (typeof value === 'string') yield* textAsJson(value);
  else if (isNested(value as object)) {
    yield '"';
    // An empty piece stays one, and ends the slice.
    for (const piece of jsonPieces((value as { [NESTED]: unknown })[NESTED]))
      yield escapeJson(piece);
    yield '"';
  } else yield* memberPieces(value as object);
}

/**
 * The JSON of a plain value in slices; together they are what JSON.stringify writes. A function in it
 * stands for the value that it returns, and is called when that value is due.
 */
export const jsonSlices = (value: unknown): Generator<string> => joinToSlices(jsonPieces(value));

function* prettyPieces(value: unknown, lineBreak: string): Generator<string> {
  if (value instanceof DeferredJson) {
    yield* prettyPieces(value.value(), lineBreak);
    return;
  }
  if (charsLeft(value, SLICE_CHARS) >= 0) {
    yield JSON.stringify(value ?? null, null, 2).replaceAll('\n', lineBreak);
    return;
  }
  if (typeof value === 'string') {
    yield* textAsJson(value);
    return;
  }
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const members = Object.entries(value as object).filter(
    ([, member]) => member !== undefined || open === '[',
  );
  yield open!;
  for (const [index, [name, member]] of members.entries()) {
    yield `${index > 0 ? ',' : ''}${lineBreak}  ${open === '{' ? `${JSON.stringify(name)}: ` : ''}`;
    yield* prettyPieces(member, `${lineBreak}  `);
  }
  yield members.length > 0 ? lineBreak + close! : close!;
}

/** Like jsonSlices, but indented by two spaces after each line break, and without functions. */
export const prettyJsonSlices = (value: unknown, lineBreak = '\n'): Generator<string> =>
  joinToSlices(prettyPieces(value, lineBreak));
