import { jsonText, successEnvelope } from './envelope.ts';

/** The text of an answer, to be written row by row. */
interface JsonListWriter {
  head: string;
  /** One row, with what stands before it. */
  row: (value: unknown, isFirst: boolean) => string;
  /** What comes after the rows, if there are any. */
  tail: (isEmpty: boolean) => string;
}

/**
 * Takes an answer whose rows are not there yet apart: `data` is an empty list, or has one as its
 * last member. Together the parts are what `JSON.stringify` makes of the answer with its rows.
 */
export function createJsonListWriter(data: object, pretty: boolean): JsonListWriter {
  const text = jsonText(successEnvelope(data), pretty);
  const end = text.lastIndexOf('[]') + 1;
  const after = text.slice(end);
  const head = text.slice(0, end);
  if (!pretty)
    return {
      head,
      row: (value, isFirst) => (isFirst ? '' : ',') + JSON.stringify(value),
      tail: () => after,
    };
  const outer = `\n${/^ */.exec(head.slice(head.lastIndexOf('\n') + 1))![0]}`;
  const inner = `${outer}  `;
  return {
    head,
    // A line break inside of a text is written as \n: these are the ones between members.
    row: (value, isFirst) =>
      (isFirst ? inner : `,${inner}`) + JSON.stringify(value, null, 2).replaceAll('\n', inner),
    tail: (isEmpty) => (isEmpty ? after : outer + after),
  };
}
