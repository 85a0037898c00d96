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
 * A request that gathers the small pieces of its body. Node makes a Buffer of each chunk of a chunked
 * body, and keeps them until the body is read to its end: 100 bytes and more for each byte of a
 * client that sends them one by one. Readers wait for the whole body anyway.
 */
export class GatheredRequest extends IncomingMessage {
  #isFirst = true;
  #gathered: Buffer | undefined;
  #size = 0;

  /** Passes on the gathered pieces. */
  #flush(): boolean {
    const gathered = this.#gathered?.subarray(0, this.#size);
    this.#gathered = undefined;
    this.#size = 0;
    return gathered === undefined || super.push(gathered);
  }

  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    // Most bodies arrive in one piece, which is not copied.
    if (this.#isFirst || piece === null || piece.length >= GATHERED_BYTES) {
      this.#isFirst = false;
      this.#flush();
      return super.push(piece, encoding);
    }
    const mayContinue = this.#size + piece.length <= GATHERED_BYTES || this.#flush();
    this.#gathered ??= Buffer.allocUnsafeSlow(GATHERED_BYTES);
    piece.copy(this.#gathered, this.#size);
    this.#size += piece.length;
    return mayContinue;
  }
}
