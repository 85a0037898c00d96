import { KIB } from '../../../../shared/lib/units.ts';

/**
 * Node's HTTP server. An `import` of `node:http` reads all of its exports, and its `WebSocket` loads
 * Node's own undici, which the service does not use: 8 MB and 80 ms of a start.
 */
const { createServer, IncomingMessage, STATUS_CODES } = process.getBuiltinModule('node:http');

export { createServer, STATUS_CODES };

/** The size to which small pieces of a body are gathered. */
const GATHERED_BYTES = 16 * KIB;

/**
 * The small pieces after which a request is read on in its turn: a read of 64 KiB has up to 10,000 of
 * them, which take 8 ms, and those of all connections would be one step of the event loop.
 */
const MANY_PIECES = 1_000;

const waiting: GatheredRequest[] = [];

/**
 * Reads on with one request in each turn of the event loop. Those with nothing to read take no turn:
 * a connection that has pipelined several complete requests would otherwise have as many turns.
 */
function readNext(): void {
  while (waiting.shift()?.readOn() === false);
  if (waiting.length > 0) setImmediate(readNext);
}

/**
 * A request that gathers the small pieces of its body. Node makes a Buffer of each chunk of a chunked
 * body, and keeps them until the body is read to its end: 100 bytes and more for each byte of a
 * client that sends them one by one. Readers wait for the whole body anyway.
 */
export class GatheredRequest extends IncomingMessage {
  #isFirst = true;
  #gathered: Buffer | undefined;
  #size = 0;
  #pieces = 0;
  #isWaiting = false;
  #isRead = false;
  /** True if the readable stream takes more. */
  #takesMore = true;

  /** Passes on the gathered pieces. */
  #flush(): void {
    const gathered = this.#gathered?.subarray(0, this.#size);
    this.#gathered = undefined;
    this.#size = 0;
    if (gathered) this.#takesMore = super.push(gathered);
  }

  #gather(piece: Buffer): void {
    if (this.#size + piece.length > GATHERED_BYTES) this.#flush();
    this.#gathered ??= Buffer.allocUnsafeSlow(GATHERED_BYTES);
    piece.copy(this.#gathered, this.#size);
    this.#size += piece.length;
    this.#pieces += 1;
    if (this.#pieces < MANY_PIECES || this.#isWaiting) return;
    this.#isWaiting = true;
    if (waiting.push(this) === 1) setImmediate(readNext);
  }

  /** Node stops reading from the connection after `false`, until `_read`. */
  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    // Most bodies arrive in one piece, which is not copied.
    if (this.#isFirst || piece === null || piece.length >= GATHERED_BYTES) {
      this.#isFirst = false;
      this.#flush();
      this.#takesMore = super.push(piece, encoding);
    } else this.#gather(piece);
    return this.#takesMore && !this.#isWaiting;
  }

  override _read(size: number): void {
    this.#isRead = true;
    this.#takesMore = true;
    if (!this.#isWaiting) super._read(size);
  }

  /** Reads on after a wait. Returns false if there is nothing to read. */
  readOn(): boolean {
    this.#isWaiting = false;
    this.#pieces = 0;
    if (!this.#takesMore || this.complete || !this.socket.readable) return false;
    // Node counts a request as read after `_read`, and no longer discards a body that its handler left.
    if (this.#isRead) super._read(0);
    else this.socket.resume();
    return true;
  }
}
