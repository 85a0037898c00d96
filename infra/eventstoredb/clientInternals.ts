import type { EventStoreDBClient } from '@eventstore/db-client';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { BatchAppendReq, BatchAppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';

/**
 * The members of the client (6.2.1, protected) by which calls of our own run on its channel, with its credentials, its
 * discovery and its reconnection. Its public calls are not used, for two reasons:
 * appendToStream keeps the pending appends of all BatchAppend calls of the process in one map, so that an error of one call,
 * as at a change of the leader, fails those of every other, and an answer which then still arrives for one of them throws
 * inside an event handler, which ends the process; and reads hand out parsed JSON, which loses the letters of the text.
 */
interface Internals {
  GRPCStreamCreator<Call>(service: typeof streamsGrpc.StreamsClient, name: string, create: (service: StreamsService) => Call): () => Promise<Call>;
  callArguments(options: { requiresLeader: boolean }, call: { deadline: number }): [metadata: object, options: object];
  getChannel(): Promise<{ close(): void }>;
}

interface StreamsService {
  batchAppend(metadata: object, options: object): AppendCall;
  read(request: ReadReq, metadata: object, options: object): ReadCall;
}

interface ResponseCall<Response> {
  on(event: 'data', listener: (response: Response) => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  on(event: 'end' | 'readable', listener: () => void): this;
  off(event: 'readable', listener: () => void): this;
  cancel(): void;
}

/** A call that carries many appends, each answered on its own. */
export interface AppendCall extends ResponseCall<BatchAppendResp> {
  write(request: BatchAppendReq): boolean;
}

/** A call that is answered with a stream: nothing more comes over the wire than is read. */
export interface ReadCall extends ResponseCall<ReadResp> {
  read(): ReadResp | null;
  readonly readableLength: number;
}

interface CallOptions {
  client: EventStoreDBClient;
  /** Whether only the leader may answer; another node then says who it is, and the client goes there. */
  requiresLeader: boolean;
  /** Ends the wait for a node to be found: a call that opens after that is cancelled. */
  signal: AbortSignal;
}

async function open<Call extends { cancel(): void }>(
  { client, requiresLeader, signal }: CallOptions,
  start: (service: StreamsService, ...args: [object, object]) => Call,
): Promise<Call> {
  const internals = client as unknown as Internals;
  const create = internals.GRPCStreamCreator(streamsGrpc.StreamsClient, 'turnlog', (service) =>
    start(service, ...internals.callArguments({ requiresLeader }, { deadline: Infinity })),
  );
  const opening = create();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([opening, aborted.promise]);
  } catch (error) {
    opening.then(
      (call) => call.cancel(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

export const openAppendCall = (options: CallOptions): Promise<AppendCall> => open(options, (service, ...args) => service.batchAppend(...args));

export const openReadCall = (options: CallOptions, request: ReadReq): Promise<ReadCall> => open(options, (service, ...args) => service.read(request, ...args));

/** Lets go of the client's sockets, which its `dispose` leaves open. */
export function closeChannel(client: EventStoreDBClient): void {
  (client as unknown as Internals).getChannel().then(
    (channel) => channel.close(),
    () => undefined,
  );
}
