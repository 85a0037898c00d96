import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { gzipSync } from 'node:zlib';
import type grpc from '@grpc/grpc-js';

/** gRPC's frame of a message: whether it is compressed, its length, and the message. */
const FRAME_HEAD_BYTES = 5;

function compressedFrame(frame: Buffer): Buffer {
  const message = gzipSync(frame.subarray(FRAME_HEAD_BYTES));
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt8(1, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

type StreamHandler = (
  interceptors: unknown,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
) => void;

/** The methods of the library's server (1.14.7) that handle a call, with and without its statistics. */
type StreamHandlers = Record<'_channelzHandler' | '_streamHandler', StreamHandler>;

/**
 * Makes a server compress each response for clients that accept gzip, which the library does not, and
 * servers from 25.1 on do. `onCompressed` is called for each response.
 */
export function compressResponses(server: grpc.Server, onCompressed: () => void): void {
  const handlers = server as unknown as StreamHandlers;
  for (const name of ['_channelzHandler', '_streamHandler'] as const) {
    const handle = handlers[name];
    handlers[name] = function handleCompressed(interceptors, stream, headers) {
      if (String(headers['grpc-accept-encoding']).includes('gzip')) {
        const { respond, write } = stream;
        stream.respond = (responseHeaders?: OutgoingHttpHeaders, options?) =>
          respond.call(stream, { ...responseHeaders, 'grpc-encoding': 'gzip' }, options);
        stream.write = ((frame: Buffer, ...rest: unknown[]) => {
          onCompressed();
          return Reflect.apply(write, stream, [compressedFrame(frame), ...rest]) as boolean;
        }) as typeof stream.write;
      }
      handle.call(this, interceptors, stream, headers);
    };
  }
}
