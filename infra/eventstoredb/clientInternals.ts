import { addAbortListener } from 'node:events';
import eventstore, { type EventStoreDBClient } from '@eventstore/db-client';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import type { ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type {
  BatchAppendReq,
  BatchAppendResp,
  ReadReq,
  ReadResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/**
 * The members of the client (6.2.1, protected) by which calls of our own run on its channel, with
 * its credentials. Its own calls, its discovery and its reconnection are not used:
 * - appendToStream keeps the pending appends of all BatchAppend calls of the process in one map. An
 *   error of one call, as at a change of the leader, fails those of every other, and an answer that
 *   still arrives for one of them throws inside an event handler, which ends the process;
 * - reads hand out parsed JSON, which loses the letters of the text;
 * - `handleError`, which its calls run after an error, is awaited by nobody: where it waits for a
 *   discovery that fails, as without a quorum, the process ends by an unhandled rejection. It also
 *   throws away the channel with its back-off;
 * - the discovery asks only the first host of esdb+discover.
 */
interface Internals {
  getGRPCClient<Service>(
    service: new (...args: never[]) => Service,
    name: string,
  ): Promise<Service>;
  callArguments(
    options: { requiresLeader: boolean },
    call: { deadline: number },
  ): [metadata: object, options: object];
  getChannel(): Promise<{ close(): void }>;
}

interface StreamsService {
  batchAppend(metadata: object, options: object): AppendCall;
  read(request: ReadReq, metadata: object, options: object): ReadCall;
}

interface GossipService {
  read(
    request: sharedPb.Empty,
    metadata: object,
    options: object,
    answer: (error: Error | null, info: ClusterInfo) => void,
  ): { cancel(): void };
}

interface ResponseCall<Response> {
  on(event: 'data', listener: (response: Response) => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  on(event: 'end' | 'readable', listener: () => void): this;
  off(event: 'readable', listener: () => void): this;
  cancel(): void;
}

/** A call that carries many appends, each answered on its own. */
interface AppendCall extends ResponseCall<BatchAppendResp> {
  write(request: BatchAppendReq): boolean;
}

/** A call that is answered with a stream: nothing more comes over the wire than is read. */
export interface ReadCall extends ResponseCall<ReadResp> {
  read(): ReadResp | null;
  readonly readableLength: number;
}

/** A client of one host, and of nothing else. */
export interface HostClient {
  append(requiresLeader: boolean): Promise<AppendCall>;
  read(request: ReadReq, requiresLeader: boolean): Promise<ReadCall>;
  /** What the node knows of its cluster. Rejects when the signal aborts. */
  gossip(signal: AbortSignal): Promise<ClusterInfo>;
  /** Cuts the connection; calls on it end. */
  close(): void;
}

const streams = streamsGrpc.StreamsClient as unknown as new () => StreamsService;
const gossip = gossipGrpc.GossipClient as unknown as new () => GossipService;

/** A call may be cancelled before anybody listens; an unheard error would end the process. */
function guarded<
  Call extends Pick<ResponseCall<unknown>, 'cancel'> & {
    on(event: 'error', listener: () => void): unknown;
  },
>(call: Call): Call {
  call.on('error', () => undefined);
  return call;
}

/**
 * Connects at the first call. Errors: `configuration_invalid` when the client does not take the
 * connection string, its files included.
 */
export function openHostClient(connectionString: string): HostClient {
  let client: EventStoreDBClient;
  try {
    client = eventstore.EventStoreDBClient.connectionString(connectionString);
  } catch {
    // The client's own message quotes the text, password included.
    throw new TurnlogError(
      'configuration_invalid',
      'The URL of the event store has an option that its client does not take, or names a file that is gone.',
    );
  }
  const internals = client as unknown as Internals;
  const args = (requiresLeader: boolean): [object, object] =>
    internals.callArguments({ requiresLeader }, { deadline: Infinity });
  const service = (): Promise<StreamsService> => internals.getGRPCClient(streams, 'turnlog');
  return {
    append: async (requiresLeader) =>
      guarded((await service()).batchAppend(...args(requiresLeader))),
    read: async (request, requiresLeader) =>
      guarded((await service()).read(request, ...args(requiresLeader))),
    async gossip(signal) {
      const asked = await internals.getGRPCClient(gossip, 'turnlog');
      const { promise: told, resolve, reject } = Promise.withResolvers<ClusterInfo>();
      const call = asked.read(new sharedPb.Empty(), ...args(false), (error, info) => {
        if (error) reject(error);
        else resolve(info);
      });
      using _cancelling = addAbortListener(signal, () => {
        reject(signal.reason);
        call.cancel();
      });
      return await told;
    },
    close() {
      internals.getChannel().then(
        (channel) => channel.close(),
        () => undefined,
      );
    },
  };
}
