/**
 * `<turnlog-chat>`: a chat with one Turnlog agent for pages of other hosts. The page gives it a
 * short-lived token, which the server of the page requests from Turnlog.
 */
import {
  ChatError,
  createChatApi,
  type ChatApi,
  type GetToken,
  type TokenAnswer,
  type TurnRef,
} from './chatApi.ts';
import { createConversation, type Conversation, type TurnView } from './conversation.ts';
import { element } from './dom.ts';
import { createStyleSheet } from './styles.ts';
import { fill, TEXTS, type Texts } from './texts.ts';

const NAME = 'turnlog-chat';

interface Events {
  /** A session has begun, or was continued after a reload. */
  'turnlog-session': { session_id: string };
  /** A turn has ended. */
  'turnlog-turn': TurnRef & { status: 'completed' | 'failed' };
  'turnlog-error': { code: string; message: string };
}

/** What is shown; replaced as a whole when an attribute changes. */
interface Parts {
  conversation: Conversation;
  input: HTMLTextAreaElement;
  send: HTMLButtonElement;
  stop: HTMLButtonElement;
  status: HTMLElement;
}

/** The turn that is being written. */
interface OpenTurn {
  /** Unknown until the service has started it. */
  ref: TurnRef | undefined;
  isStopped: boolean;
}

class TurnlogChat extends HTMLElement {
  static readonly observedAttributes = ['server', 'agent', 'token-url', 'session', 'heading'];

  /** Returns a chat token in place of `token-url`. */
  getToken: GetToken | undefined;
  /** Texts in place of the English ones. Set before the element is added to the page. */
  texts: Partial<Texts> = {};

  #parts: Parts | undefined;
  #api: ChatApi | undefined;
  #sessionId: string | undefined;
  #turn: OpenTurn | undefined;
  /** Ends everything that the element does; renewed when it starts again. */
  #running = new AbortController();
  #isStarting = false;

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  connectedCallback(): void {
    this.#scheduleStart();
  }

  disconnectedCallback(): void {
    this.#running.abort();
  }

  attributeChangedCallback(): void {
    if (this.isConnected) this.#scheduleStart();
  }

  /** Starts once for all changes of a moment, after the page has set the properties. */
  #scheduleStart(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    queueMicrotask(() => {
      this.#isStarting = false;
      if (this.isConnected) this.#start();
    });
  }

  get #text(): Texts {
    const heading = this.getAttribute('heading');
    return { ...TEXTS, ...(heading !== null && { heading }), ...this.texts };
  }

  #start(): void {
    this.#running.abort();
    this.#running = new AbortController();
    this.#turn = undefined;
    this.#parts = this.#render();
    const server = this.getAttribute('server') ?? '';
    const agent = this.getAttribute('agent') ?? undefined;
    this.#api = createChatApi({ server, agent, getToken: () => this.#requestToken() });
    this.#sessionId = this.getAttribute('session') ?? this.#storedSession();
    void this.#guard(() => this.#load());
  }

  async #requestToken(): Promise<TokenAnswer> {
    if (this.getToken) return this.getToken();
    const url = this.getAttribute('token-url');
    if (url === null) throw new ChatError('misconfigured', 'The attribute token-url is missing.');
    const response = await fetch(url, { method: 'POST', headers: { accept: 'application/json' } });
    if (!response.ok) throw new Error(`The token endpoint answered ${response.status}.`);
    return (await response.json()) as TokenAnswer;
  }

  get #storageKey(): string {
    const of = ['server', 'agent', 'token-url'].map((name) => this.getAttribute(name) ?? '');
    return `${NAME} ${of.join(' ')}`;
  }

  #storedSession(): string | undefined {
    try {
      return sessionStorage.getItem(this.#storageKey) ?? undefined;
    } catch {
      // The browser forbids the page to store anything: a reload begins a new session.
      return undefined;
    }
  }

  #keepSession(id: string | undefined): void {
    this.#sessionId = id;
    try {
      if (id === undefined) sessionStorage.removeItem(this.#storageKey);
      else sessionStorage.setItem(this.#storageKey, id);
    } catch {
      // As above.
    }
  }

  #emit<Name extends keyof Events>(name: Name, detail: Events[Name]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  #render(): Parts {
    const root = this.shadowRoot ?? this.attachShadow({ mode: 'open', delegatesFocus: true });
    root.adoptedStyleSheets = [createStyleSheet()];
    const texts = this.#text;
    const button = (className: string, label: string): HTMLButtonElement =>
      element('button', { type: 'button', class: className, part: 'button' }, label);
    const restart = button('restart', texts.restart);
    const toLatest = button('latest', texts.latest);
    toLatest.hidden = true;
    const conversation = createConversation(texts, toLatest);
    const input = element('textarea', {
      id: 'input',
      part: 'input',
      rows: '1',
      placeholder: texts.placeholder,
    });
    const send = element('button', { type: 'submit', class: 'send', part: 'button' }, texts.send);
    const stop = button('stop', texts.stop);
    stop.hidden = true;
    const status = element('div', { class: 'hidden', role: 'status' });
    const label = element('label', { for: 'input', class: 'hidden' }, texts.label);
    const form = element('form', { part: 'composer' }, label, input, send, stop);
    const header = element(
      'header',
      { part: 'header' },
      element('h2', { part: 'heading' }, texts.heading),
      restart,
    );
    root.replaceChildren(element('section', { 'aria-label': texts.heading, part: 'chat' }, header));
    root.firstElementChild!.append(
      element('div', { class: 'body' }, conversation.log, toLatest),
      form,
      status,
    );
    restart.addEventListener('click', () => this.#restart());
    stop.addEventListener('click', () => this.#stopTurn());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    input.addEventListener('keydown', (event) => {
      // Enter ends a composition of an input method, too.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.#stopTurn();
    });
    return { conversation, input, send, stop, status };
  }

  /** Runs what may fail as a whole, and shows the failure below the messages. */
  async #guard(work: () => Promise<void>): Promise<void> {
    const { signal } = this.#running;
    try {
      this.#parts!.conversation.setNote(undefined);
      await work();
    } catch (error) {
      if (signal.aborted) return;
      const retry = (): void => void this.#guard(work);
      this.#parts!.conversation.setNote(this.#explain(error), retry);
    }
  }

  /** What went wrong, and what to try. */
  #explain(error: unknown): string {
    const failure =
      error instanceof ChatError ? error : new ChatError('failed', String(error), undefined);
    const { code, message } = failure;
    this.#emit('turnlog-error', { code, message });
    const texts = this.#text;
    if (code === 'misconfigured') return fill(texts.misconfigured, 'reason', message);
    if (code === 'network' || code === 'token') return texts[code];
    if (code === 'payload_too_large') return texts.tooLong;
    if (code === 'invalid_request' || code === 'forbidden' || code === 'agent_not_found')
      return fill(texts.misconfigured, 'reason', message);
    return failure.retryAfterMs === undefined ? texts.failed : texts.busy;
  }

  /** Shows the session so far, and continues to show a turn that is still open. */
  async #load(): Promise<void> {
    const { conversation } = this.#parts!;
    const { signal } = this.#running;
    const texts = this.#text;
    conversation.clear();
    if (this.#sessionId === undefined) {
      conversation.setNote(texts.empty);
      return;
    }
    const session_id = this.#sessionId;
    const transcript = await this.#api!.readTranscript(session_id, signal);
    if (signal.aborted) return;
    if (!transcript) {
      // It was erased, or it is of another person who used this page before.
      this.#keepSession(undefined);
      conversation.setNote(texts.empty);
      return;
    }
    this.#emit('turnlog-session', { session_id });
    if (transcript.turn_count > transcript.turns.length) conversation.setNote(texts.earlier);
    const open = transcript.turns.find(({ status }) => status === 'running');
    for (const turn of transcript.turns) if (turn !== open) conversation.addRecorded(turn);
    if (!open) return;
    const view = conversation.begin(open.input);
    await this.#show(view, { session_id, turn: open.turn }, open.input);
  }

  #restart(): void {
    this.#keepSession(undefined);
    this.#start();
    this.#parts!.input.focus();
  }

  #submit(): void {
    const { input, conversation } = this.#parts!;
    const text = input.value.trim();
    if (text === '' || this.#turn) return;
    input.value = '';
    input.focus();
    conversation.setNote(undefined);
    void this.#run(text);
  }

  async #run(input: string): Promise<void> {
    const view = this.#parts!.conversation.begin(input);
    await this.#show(view, { input, session_id: this.#sessionId }, input);
  }

  /** Shows the events of a turn until it ends. */
  async #show(
    view: TurnView,
    start: Parameters<ChatApi['follow']>[0],
    input: string,
  ): Promise<void> {
    const { signal } = this.#running;
    const texts = this.#text;
    const open: OpenTurn = { ref: undefined, isStopped: false };
    if ('turn' in start) open.ref = start;
    this.#setTurn(open);
    const retry = (): void => {
      if (this.#turn) return;
      view.remove();
      void this.#run(input);
    };
    try {
      for await (const event of this.#api!.follow(start, signal)) {
        this.#parts!.conversation.setNote(
          event.event === 'reconnecting' ? texts.reconnecting : undefined,
        );
        switch (event.event) {
          case 'turn.started':
            open.ref = event.data;
            this.#keepSession(event.data.session_id);
            this.#emit('turnlog-session', { session_id: event.data.session_id });
            if (open.isStopped) void this.#cancel(event.data);
            break;
          case 'output.delta':
            view.addText(event.data.round, event.data.text);
            break;
          case 'tool.called':
            view.addToolCall(event.data);
            break;
          case 'turn.completed':
            view.complete(event.data.data.output);
            this.#endTurn(open, 'completed', texts.done);
            break;
          case 'error': {
            const { code, error: message } = event.data;
            const isStopped = open.isStopped && code === 'turn_interrupted';
            const note = isStopped ? texts.stopped : this.#explain(new ChatError(code, message));
            view.fail(note, isStopped ? undefined : retry);
            this.#endTurn(open, 'failed', note);
            break;
          }
          // Reasoning, and events of later releases.
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      const note = this.#explain(error);
      if (error instanceof ChatError && error.code.startsWith('session_'))
        this.#keepSession(undefined);
      const ref = open.ref;
      // A turn that has started goes on without this page: it is followed again, not repeated.
      const again = (): void => {
        view.remove();
        const next = this.#parts!.conversation.begin(input);
        void this.#show(next, ref!, input);
      };
      view.fail(note, ref && this.#sessionId !== undefined ? again : retry);
      this.#endTurn(open, 'failed', note);
    }
  }

  #setTurn(turn: OpenTurn | undefined): void {
    const { send, stop, status } = this.#parts!;
    this.#turn = turn;
    const hadFocus = this.shadowRoot!.activeElement;
    stop.hidden = turn === undefined;
    send.hidden = turn !== undefined;
    if (hadFocus === stop || hadFocus === send) this.#parts!.input.focus();
    if (turn) status.textContent = this.#text.working;
  }

  #endTurn({ ref }: OpenTurn, status: 'completed' | 'failed', note: string): void {
    this.#setTurn(undefined);
    this.#parts!.status.textContent = note;
    this.#parts!.conversation.setNote(undefined);
    if (ref) this.#emit('turnlog-turn', { ...ref, status });
  }

  #stopTurn(): void {
    const open = this.#turn;
    if (!open || open.isStopped) return;
    open.isStopped = true;
    if (open.ref) void this.#cancel(open.ref);
  }

  async #cancel(turn: TurnRef): Promise<void> {
    try {
      await this.#api!.cancel(turn);
    } catch (error) {
      if (this.#turn) this.#turn.isStopped = false;
      this.#parts!.conversation.setNote(this.#explain(error));
    }
  }
}

if (!customElements.get(NAME)) customElements.define(NAME, TurnlogChat);
