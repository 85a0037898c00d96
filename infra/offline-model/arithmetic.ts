import { LIMITS } from '../../shared/limits.ts';

/** A word or number of maximal length, white space, or one other character. */
const PIECE = /[\p{L}\p{N}_](?:[\p{L}\p{N}_]|[.,'’](?=[\p{L}\p{N}_]))*|\s+|[^]/gu;
/** Also 2e3, 3x4, 2pi and 2². */
const NUMBER = /^\d[\d.,_'’]*(?:e\d*|x\d+|pi|π)?[⁰¹²³⁴⁵⁶⁷⁸⁹]*$/i;
const SIGN = /^(?:pi|π|e|[-+*/^%()×÷·−√$€£¥⁰¹²³⁴⁵⁶⁷⁸⁹⁻])$/;
const CALL = /^(?:math\.)?[a-z]+\d*$/i;
/** An operator between two operands, or a function. */
const OPERATION =
  /[\d)πie%!][\s)$€£¥%]*(?:\*\*|[-+*/^×÷·−%x]|mod|of)[\s(+$€£¥√−-]*[\d.a-zπ]|\d[\s)]*!|[⁰¹²³⁴⁵⁶⁷⁸⁹√]|[a-z]\d*\(/i;
/**
 * Dates and numbers such as 2026-11-20, 24/7/365 or 555-0199. Written without spaces, these are no
 * calculations.
 */
const DATE_OR_NUMBER =
  /^\d{4}[-/]\d{1,2}[-/]\d{1,2}$|^\d{1,2}\/\d{1,2}\/\d{2,4}$|^\d{3,}-\d{3,}(-\d+)*$/;
/** An operator at the edge means that the run is part of something longer, as in "2 apples * 3". */
const FRAGMENT = /^(?:[+*/^×÷·%x)!]|[-−] )|[-+*/^×÷·−√(x]$/;
const BEFORE = /(?:^\s*=|^|[\s"'`«“‘([])$/;
/** As in "3 plus 4 * 5". */
const SPOKEN_BEFORE = /\d\s+(?:plus|minus|times|over|by|of)\s+$/i;
const AFTER =
  /^(?!\s+(?:plus|minus|times|over|divided|of|squared|cubed|percent)\b)(?:[\s"'`»”’)\]]|$|[=.,;:?!…]+(?:[\s"'`»”’)\]]|$))/i;

/** Whether a piece continues a run of arithmetic. */
function continues(run: string, piece: string, rest: string): boolean {
  if (NUMBER.test(piece) || SIGN.test(piece)) return true;
  if (CALL.test(piece) && rest.startsWith('(')) return true;
  if (piece === '.') return /^\d/.test(rest) && !/[\d)]$/.test(run);
  if (piece === '!') return /[\d)]$/.test(run) && /^ *[-+*/^×÷·−)]/.test(rest);
  if (piece === ',') return run.split('(').length > run.split(')').length;
  if (piece === 'of') return /%\s*$/.test(run);
  if (/^(?:x|mod)$/i.test(piece)) return /[\d)%]\s*$/.test(run);
  return run !== '' && piece.trim() === '';
}

interface Run {
  text: string;
  start: number;
}

/** The parts of a text that contain only arithmetic, each of maximal length. */
function runsOf(text: string): Run[] {
  const runs: Run[] = [];
  let run: Run = { text: '', start: 0 };
  for (const { 0: piece, index } of text.matchAll(PIECE)) {
    const end = index + piece.length;
    if (continues(run.text, piece, text.slice(end, end + 8))) {
      run.text += piece;
    } else {
      runs.push(run);
      run = { text: '', start: end };
    }
  }
  return [...runs, run].map(({ text: written, start }) => ({ text: written.trimEnd(), start }));
}

function balanced(text: string): boolean {
  let open = 0;
  for (const character of text) {
    if (character === '(') open += 1;
    if (character === ')') open -= 1;
    if (open < 0) return false;
  }
  return open === 0;
}

/**
 * Finds the first arithmetic expression with an operator that begins in the searched part of a
 * text, such as `12*34` in "What is 12*34?". Returns it as written, and never a part of an
 * expression; undefined when there is none, or when words interrupt it.
 */
export function findExpression(text: string): string | undefined {
  const { searchedChars } = LIMITS.offlineModel;
  const { expressionChars } = LIMITS.arithmetic;
  const written = text.slice(0, searchedChars + expressionChars + 1);
  // Full-width forms, as in 1+2, are read like the plain ones.
  const searched = written.replace(/[！-～]/g, (sign) =>
    String.fromCharCode(sign.charCodeAt(0) - 0xfee0),
  );
  const runs = runsOf(searched).filter((run) => /\d|π|pi/.test(run.text));
  if (runs.some((run) => FRAGMENT.test(run.text))) return undefined;
  const expression = runs.find(({ text: run, start }) => {
    const end = start + run.length;
    const before = searched.slice(Math.max(0, start - 20), start);
    return (
      start < searchedChars &&
      run.length <= expressionChars &&
      OPERATION.test(run) &&
      !DATE_OR_NUMBER.test(run) &&
      balanced(run) &&
      BEFORE.test(before) &&
      !SPOKEN_BEFORE.test(before) &&
      AFTER.test(searched.slice(end, end + 20))
    );
  });
  if (!expression) return undefined;
  return written.slice(expression.start, expression.start + expression.text.length);
}
