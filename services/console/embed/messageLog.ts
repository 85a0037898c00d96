import type { Schema } from '../src/api/client.ts';
import { marked, sanitize } from '../src/markdown/sanitize.ts';
import type { Texts } from './texts.ts';

/** Within this distance of its end, the log follows what is written. */
const NEAR_END_PX = 48;

/** Creates an element with attributes and children. Text is never parsed as HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  for (const attribute of Object.entries(attributes)) created.setAttribute(...attribute);
  created.append(...children);
  return created;
}

/**
 * Shows a growing text as Markdown. Blocks that have not changed keep their elements, so that a
 * selection in them survives and nothing flickers.
 */
function createMarkdownView(parent: HTMLElement): (text: string) => void {
  const shown: { raw: string; nodes: ChildNode[] }[] = [];
  return (text) => {
    const tokens = marked.lexer(text);
    const change = tokens.findIndex(({ raw }, at) => shown[at]?.raw !== raw);
    const unchangedCount = change === -1 ? tokens.length : change;
    for (const { nodes } of shown.splice(unchangedCount)) for (const node of nodes) node.remove();
    for (const token of tokens.slice(unchangedCount)) {
      const block = sanitize(marked.parser(Object.assign([token], { links: tokens.links })));
      // Content that scrolls sideways must be reachable with the keyboard.
      for (const wide of block.querySelectorAll<HTMLElement>('pre, table')) wide.tabIndex = 0;
      for (const code of block.querySelectorAll('pre')) code.role = 'group';
      const nodes = [...block.childNodes];
      parent.append(...nodes);
      shown.push({ raw: token.raw, nodes });
    }
  };
}

/** Deeper JSON is not indented: the spaces could take a thousand times as much memory as the text. */
const INDENTED_LEVELS = 20;

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1)));

/** JSON is indented; other text stays as it is. */
function readable(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, INDENTED_LEVELS) ? text : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

function toolCall(call: Schema<'ToolCall'>, texts: Texts): HTMLElement {
  const title = (call.is_error ? texts.toolFailed : texts.tool).replace('{tool}', () => call.tool);
  const part = (term: string, text: string): HTMLElement[] => [
    element('dt', {}, term),
    element('dd', {}, element('pre', { tabindex: '0' }, readable(text))),
  ];
  return element(
    'details',
    { class: call.is_error ? 'tool failed' : 'tool', part: 'tool' },
    element('summary', {}, title),
    element(
      'dl',
      {},
      ...part(texts.toolInput, call.arguments),
      ...part(texts.toolResult, call.result),
    ),
  );
}

/** One message and its answer while it is written. */
export type TurnView = ReturnType<ReturnType<typeof createMessageLog>['begin']>;

/** The messages of a session in an element that scrolls. `toLatest` leads to the end. */
export function createMessageLog(texts: Texts, toLatest: HTMLButtonElement) {
  const list = element('ol');
  const note = element('div', { class: 'note', part: 'note' });
  const log = element(
    'div',
    { class: 'log', part: 'log', role: 'log', tabindex: '0', 'aria-label': texts.heading },
    list,
    note,
  );
  let isAtEnd = true;
  /** The place to which the log has followed its end. */
  let followedTop = 0;
  const isNearEnd = (): boolean =>
    log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PX;
  /** Follows the end only for a reader who is there. */
  function update(): void {
    // The event of a reader's scroll comes only with the next frame.
    if (log.scrollTop < followedTop && !isNearEnd()) isAtEnd = false;
    if (isAtEnd) {
      log.scrollTop = log.scrollHeight;
      followedTop = log.scrollTop;
    }
    toLatest.hidden = isAtEnd;
  }
  function goToEnd(): void {
    isAtEnd = true;
    followedTop = 0;
    update();
  }
  log.addEventListener('scroll', () => {
    isAtEnd = isNearEnd();
    toLatest.hidden = isAtEnd;
  });
  toLatest.addEventListener('click', () => {
    goToEnd();
    log.focus();
  });
  new ResizeObserver(update).observe(log);

  function showNote(parent: HTMLElement, text?: string, retry?: () => void): void {
    parent.replaceChildren(...(text === undefined ? [] : [element('p', {}, text)]));
    if (text !== undefined && retry) {
      const button = element('button', { type: 'button', part: 'button' }, texts.retry);
      button.addEventListener('click', retry);
      parent.append(button);
    }
    update();
  }
  const author = (name: string): HTMLElement => element('span', { class: 'hidden' }, `${name}: `);

  return {
    log,
    /** Shows a note below the messages; without a text, none. */
    setNote: (text?: string, retry?: () => void) => showNote(note, text, retry),
    begin(input: string) {
      const content = element('div');
      const pending = element('p', { class: 'pending' });
      // A screen reader reads an answer once it is complete.
      const busy = { class: 'agent', part: 'message agent-message', 'aria-busy': 'true' };
      const answer = element('li', busy, author(texts.agent), content, pending);
      const user = { class: 'user', part: 'message user-message' };
      const question = element('li', user, author(texts.you), element('p', {}, input));
      list.append(question, answer);
      goToEnd();
      let round: { number: number; text: string; show: (text: string) => void } | undefined;
      let frame: number | undefined;
      function draw(): void {
        if (frame !== undefined) cancelAnimationFrame(frame);
        frame = undefined;
        round?.show(round.text);
        update();
      }
      function addText(number: number, text: string): void {
        if (round?.number !== number) {
          draw();
          const block = content.appendChild(element('div', { class: 'markdown' }));
          round = { number, text: '', show: createMarkdownView(block) };
        }
        round.text += text;
        // At most once per frame, however many parts arrive.
        frame ??= requestAnimationFrame(draw);
      }
      function end(): void {
        draw();
        pending.remove();
        answer.setAttribute('aria-busy', 'false');
      }
      return {
        addText,
        addToolCall(call: Schema<'ToolCall'>): void {
          draw();
          round = undefined;
          content.append(toolCall(call, texts));
          update();
        },
        /** `output` is all of the last round. */
        complete(output: string): void {
          if (round) round.text = output;
          else addText(0, output);
          end();
        },
        fail(text: string, retry?: () => void): void {
          end();
          showNote(answer.appendChild(element('div', { class: 'note' })), text, retry);
        },
        remove(): void {
          question.remove();
          answer.remove();
        },
      };
    },
  };
}
