/**
 * `<turnlog-chat>`: a chat with an agent for pages of other hosts. The page gives it a short-lived
 * token, which the server of the page requests from Turnlog.
 */
import { ApiError } from '../src/api/apiError.ts';
import { chatError, createChatApi, type GetToken, type TurnRef } from './chatApi.ts';
import { createMessageLog, element, type TurnView } from './messageLog.ts';
import { styleSheet } from './styles.ts';
import { TEXTS, type Texts } from './texts.ts';

const NAME = 'turnlog-chat';
/** Codes of what only the owner of the page can change. */
const SETUP_CODES = ['misconfigured', 'invalid_request', 'forbidden', 'agent_not_found'];

class TurnlogChat extends HTMLElement {
  static readonly observedAttributes = ['server', 'agent', 'token-url', 'session', 'heading'];

  /** Returns a chat token, in place of the attribute `token-url`. */
  getToken: GetToken | undefined;
  /** Texts in place of the English ones. Set before the element is added to the page. */
  texts: Partial<Texts> = {};
  #chat: ReturnType<typeof openChat> | undefined;
  #isScheduled = false;

  connectedCallback(): void {
    this.attributeChangedCallback();
  }

  disconnectedCallback(): void {
    this.#chat?.close();
  }

  /** Starts anew, once for all changes of a moment. */
  attributeChangedCallback(): void {
    if (this.#isScheduled || !this.isConnected) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#chat?.close();
      if (this.isConnected) this.#chat = openChat(this);
    });
  }
}

async function fetchToken(url: string | null): ReturnType<GetToken> {
  if (url === null) throw chatError('misconfigured', 'The attribute token-url is missing.');
  const response = await fetch(url, { method: 'POST', headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`The token endpoint answered with ${response.status}.`);
  return (await response.json()) as Awaited<ReturnType<GetToken>>;
}

/** Runs what a browser may forbid: a reload begins a new session then. */
function ifAllowed<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Shows a chat in the shadow tree of its element, until it is closed. */
function openChat(host: TurnlogChat) {
  const attribute = (name: string): string | null => host.getAttribute(name);
  const texts = { ...TEXTS, ...host.texts };
  texts.heading = attribute('heading') ?? texts.heading;
  const closed = new AbortController();
  const { signal } = closed;
  const api = createChatApi(attribute('server') ?? '', attribute('agent'), () =>
    host.getToken ? host.getToken() : fetchToken(attribute('token-url')),
  );
  const storageKey = [NAME, ...['server', 'agent', 'token-url'].map(attribute)].join(' ');
  let sessionId = attribute('session') ?? ifAllowed(() => sessionStorage.getItem(storageKey));
  /** Keeps the session of the tab for a reload; null forgets it. */
  function setSession(id: string | null): void {
    sessionId = id;
    if (id === null) ifAllowed(() => sessionStorage.removeItem(storageKey));
    else ifAllowed(() => sessionStorage.setItem(storageKey, id));
  }
  /** Until then, what the visitor writes stays in the input. */
  let isLoaded = false;
  /** The turn that is being written. `ref` is unknown until the service has started it. */
  let open: { ref?: TurnRef; isStopped: boolean } | undefined;

  const button = (name: keyof Texts): HTMLButtonElement =>
    element('button', { type: 'button', class: name, part: 'button' }, texts[name]);
  const [latest, send, stop] = [button('latest'), button('send'), button('stop')] as const;
  latest.hidden = stop.hidden = true;
  send.type = 'submit';
  const restart = button('restart');
  const messages = createMessageLog(texts, latest);
  const { placeholder } = texts;
  const input = element('textarea', { id: 'input', part: 'input', rows: '1', placeholder });
  const label = element('label', { for: 'input', class: 'hidden' }, texts.label);
  const form = element('form', { part: 'composer' }, label, input, send, stop);
  const status = element('div', { class: 'hidden', role: 'status' });
  const heading = element('h2', { part: 'heading' }, texts.heading);
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open', delegatesFocus: true });
  root.adoptedStyleSheets = [styleSheet];
  root.replaceChildren(
    element(
      'section',
      { 'aria-label': texts.heading, part: 'chat' },
      element('header', { part: 'header' }, heading, restart),
      element('div', { class: 'body' }, messages.log, latest),
      form,
      status,
    ),
  );

  const emit = (name: string, detail: object): boolean =>
    host.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));

  /** The failure, and the remedy. */
  function explain(error: unknown): string {
    const { code, message, retry } =
      error instanceof ApiError ? error : chatError('', String(error));
    emit('turnlog-error', { code, message });
    if (SETUP_CODES.includes(code)) return texts.misconfigured.replace('{reason}', () => message);
    if (code === 'network' || code === 'token') return texts[code];
    if (code === 'payload_too_large') return texts.tooLong;
    return retry === 'same_key' ? texts.busy : texts.failed;
  }

  /** Lets the visitor send, or stop `turn`, and tells screen readers why. */
  function setOpen(turn: typeof open, announced: string): void {
    if ([send, stop].includes(root.activeElement as HTMLButtonElement)) input.focus();
    open = turn;
    stop.hidden = !turn;
    send.hidden = !!turn;
    status.textContent = announced;
    messages.setNote();
  }

  function cancel(ref: TurnRef): void {
    api.cancel(ref).catch((error: unknown) => {
      if (open) open.isStopped = false;
      messages.setNote(explain(error));
    });
  }
  function stopTurn(): void {
    if (!open || open.isStopped) return;
    open.isStopped = true;
    if (open.ref) cancel(open.ref);
  }

  function run(text: string, view: TurnView, start?: TurnRef): void {
    const turn: NonNullable<typeof open> = { ...(start && { ref: start }), isStopped: false };
    function end(state: 'completed' | 'failed', announced: string): void {
      setOpen(undefined, announced);
      if (turn.ref) emit('turnlog-turn', { ...turn.ref, status: state });
    }
    function fail(error: unknown, again?: TurnRef): void {
      const isStopped = turn.isStopped && (error as ApiError).code === 'turn_interrupted';
      const note = isStopped ? texts.stopped : explain(error);
      const retry = (): void => {
        if (open) return;
        view.remove();
        run(text, messages.begin(text), again);
      };
      view.fail(note, isStopped ? undefined : retry);
      end('failed', note);
    }
    async function show(): Promise<void> {
      const next = start ?? { input: text, session_id: sessionId ?? undefined };
      for await (const event of api.follow(next, signal)) {
        messages.setNote(event.event === 'reconnecting' ? texts.reconnecting : undefined);
        if (event.event === 'turn.started') {
          turn.ref = event.data;
          setSession(event.data.session_id);
          emit('turnlog-session', { session_id: event.data.session_id });
          if (turn.isStopped) cancel(event.data);
        } else if (event.event === 'output.delta') view.addText(event.data.round, event.data.text);
        else if (event.event === 'tool.called') view.addToolCall(event.data);
        else if (event.event === 'error') fail(new ApiError(0, event.data));
        else if (event.event === 'turn.completed') {
          view.complete(event.data.data.output);
          end('completed', texts.done);
        }
      }
    }
    setOpen(turn, texts.working);
    show().catch((error: unknown) => {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.code.startsWith('session_')) setSession(null);
      // A turn that has started goes on without this page: it is followed again, not repeated.
      fail(error, sessionId === null ? undefined : turn.ref);
    });
  }

  /** Shows the session so far, and goes on with a turn that is still open. */
  async function load(): Promise<void> {
    messages.setNote();
    const transcript = sessionId && (await api.readTranscript(sessionId, signal));
    if (!transcript) {
      // There is none, it was erased, or it is of another person who used this tab before.
      setSession(null);
      messages.setNote(texts.empty);
      isLoaded = true;
      return;
    }
    const { session_id } = transcript;
    emit('turnlog-session', { session_id });
    if (transcript.turn_count > transcript.turns.length) messages.setNote(texts.earlier);
    for (const { turn, status: state, ...recorded } of transcript.turns) {
      const view = messages.begin(recorded.input);
      if (state === 'running') {
        run(recorded.input, view, { session_id, turn });
        break;
      }
      for (const call of recorded.tool_calls) view.addToolCall(call);
      if (state === 'completed') view.complete(recorded.output ?? '');
      else if (state === 'failed') view.fail(texts.failed);
      else view.fail(recorded.error?.reason === 'cancelled' ? texts.stopped : texts.interrupted);
    }
    isLoaded = true;
  }
  const tryLoad = (): Promise<void> =>
    load().catch((error: unknown) => {
      if (!signal.aborted) messages.setNote(explain(error), () => void tryLoad());
    });

  function submit(event: Event): void {
    event.preventDefault();
    const text = input.value.trim();
    if (text === '' || open || !isLoaded) return;
    input.value = '';
    input.focus();
    run(text, messages.begin(text));
  }
  form.addEventListener('submit', submit);
  input.addEventListener('keydown', (event) => {
    // Enter ends a composition of an input method, too.
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
  });
  form.addEventListener('keydown', (event) => event.key === 'Escape' && stopTurn());
  stop.addEventListener('click', stopTurn);
  restart.addEventListener('click', () => {
    setSession(null);
    host.removeAttribute('session');
    host.attributeChangedCallback();
    queueMicrotask(() => root.querySelector('textarea')!.focus());
  });
  void tryLoad();
  return { close: () => closed.abort() };
}

if (!customElements.get(NAME)) customElements.define(NAME, TurnlogChat);
