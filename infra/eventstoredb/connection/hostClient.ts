import { addAbortListener } from 'node:events';
import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import eventstore, { type EventStoreDBClient } from '@eventstore/db-client';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import type { ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { credentials, type Metadata } from '@grpc/grpc-js';
import { CompressionFilter } from '@grpc/grpc-js/build/src/compression-filter.js';
import { decodeAppendResponse, type AppendResponse } from '../append/appendMessages.ts';
import { decodeReadResponse, type ReadResponse } from '../read/readResponse.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/**
 * The protected members of the client (6.2.1) that run our own calls on its channel with its
 * credentials. The client's own calls, discovery and reconnection are not used:
 * - appendToStream keeps the pending appends of all BatchAppend calls of the process in one map. An
 *   error of one call, for example after an election, fails the appends of all other calls. A late
 *   answer to a failed append throws in an event handler and ends the process.
 * - Reads return parsed JSON, which loses the exact text.
 * - The client does not await `handleError`, which runs after an error. When discovery fails, for
 *   example without a quorum, the unhandled rejection ends the process. `handleError` also discards
 *   the channel and its backoff.
 * - Discovery queries only the first host of esdb+discover.
 */
interface ClientInternals {
  getGRPCClient<Service>(
    service: new (...args: never[]) => Service,
    name: string,
  ): Promise<Service>;
  callArguments(
    options: { requiresLeader: boolean },
    call: { deadline: number },
  ): [metadata: Metadata, options: object];
  getChannel(): Promise<InternalsOfChannel>;
  createChannel(): Promise<InternalsOfChannel>;
}

/** A channel of @grpc/grpc-js (1.14.7), which the client creates without a way to set its options. */
interface InternalsOfChannel {
  close(): void;
  /** The options with which it will connect, at its first call. */
  internalChannel: { getOptions(): Record<string, unknown> };
}

interface StreamsService {
  makeBidiStreamRequest(
    path: string,
    serialize: (request: Buffer) => Buffer,
    deserialize: (message: Buffer) => AppendResponse,
    metadata: object,
    options: object,
  ): BatchAppendCall;
  makeServerStreamRequest(
    path: string,
    serialize: (request: ReadReq) => Buffer,
    deserialize: (message: Buffer) => ReadResponse,
    request: ReadReq,
    metadata: object,
    options: object,
  ): ReadCall;
}

interface GossipService {
  read(
    request: sharedPb.Empty,
    metadata: object,
    options: object,
    callback: (error: Error | null, info: ClusterInfo) => void,
  ): { cancel(): void };
}

interface ResponseCall<Response> {
  on(event: 'data', listener: (response: Response) => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  on(event: 'end', listener: () => void): this;
  cancel(): void;
}

/** A call that carries many appends. The server answers each append separately. */
interface BatchAppendCall extends ResponseCall<AppendResponse> {
  /** Sends an encoded request. */
  write(request: Buffer): boolean;
}

/** A call with a stream of responses. While it is paused, the server sends little more. */
export interface ReadCall extends ResponseCall<ReadResponse> {
  pause(): void;
  resume(): void;
}

const BATCH_APPEND_PATH = '/event_store.client.streams.Streams/BatchAppend';
const READ_PATH = '/event_store.client.streams.Streams/Read';
const serializeEncoded = (request: Buffer): Buffer => request;
const serializeRead = (request: ReadReq): Buffer => Buffer.from(request.serializeBinary());

const ACCEPTED = 'grpc-accept-encoding';

/*
 * @grpc/grpc-js (1.14.7) offers gzip with each call, whatever its metadata says, and has no option
 * for it. Servers from 25.1 on then compress each response, for twice the CPU time of both sides.
 */
const { sendMetadata } = CompressionFilter.prototype;
CompressionFilter.prototype.sendMetadata = async function sendAcceptedEncodings(metadata) {
  const [accepted] = (await metadata).get(ACCEPTED);
  const sent = await sendMetadata.call(this, metadata);
  if (accepted !== undefined) sent.set(ACCEPTED, accepted);
  return sent;
};

/** Asks for uncompressed responses to the call with this metadata. */
function refuseCompression(metadata: Metadata): void {
  metadata.set(ACCEPTED, 'identity');
}

/** The part of the credentials of a channel with TLS that creates its connections. */
interface TlsCredentials {
  _createSecureConnector(...args: unknown[]): { connectionOptions: { servername?: string } };
}

/*
 * @grpc/grpc-js (1.14.7) sends the host as the name of the server (SNI). An IP address is no valid
 * name, and Node.js prints the warning DEP0123. Without a name, the certificate is still compared
 * with the host.
 */
const tlsCredentials = Object.getPrototypeOf(
  credentials.createFromSecureContext({} as SecureContext),
) as TlsCredentials;
const { _createSecureConnector: createSecureConnector } = tlsCredentials;
tlsCredentials._createSecureConnector = function createConnectorWithValidName(...args) {
  const connector = createSecureConnector.apply(this, args);
  const { connectionOptions } = connector;
  if (isIP(connectionOptions.servername ?? '') !== 0) delete connectionOptions.servername;
  return connector;
};

/**
 * How much of a connection, and of each of its calls, the server may send ahead, in bytes. With
 * HTTP/2's default of 64 KiB, a server that is read by a busy consumer waits after some 80 events, so
 * both work in turns while a subscription catches up.
 */
const FLOW_CONTROL_WINDOW = 1024 * 1024;

/** Makes a client's channel connect with the larger window. */
function widenWindow(internals: ClientInternals): void {
  const { createChannel } = internals;
  internals.createChannel = async () => {
    const channel = await createChannel();
    channel.internalChannel.getOptions()['grpc-node.flow_control_window'] = FLOW_CONTROL_WINDOW;
    return channel;
  };
}

/** How to connect to a single host. */
export interface HostConnection {
  connectionString: string;
  /** Whether the server may compress its responses. */
  compression: boolean;
}

/** A client of a single host. */
export interface HostClient {
  openBatchAppend(requiresLeader: boolean): Promise<BatchAppendCall>;
  openRead(request: ReadReq, requiresLeader: boolean): Promise<ReadCall>;
  /** Reads the node's view of its cluster. Rejects with the abort reason. */
  readGossip(signal: AbortSignal): Promise<ClusterInfo>;
  /** Closes the connection and ends its calls. */
  close(): void;
}

const streams = streamsGrpc.StreamsClient as unknown as new () => StreamsService;
const gossip = gossipGrpc.GossipClient as unknown as new () => GossipService;

/**
 * Adds an error listener: a call may be cancelled before its caller listens, and an unhandled error
 * event would end the process.
 */
function withErrorListener<
  Call extends Pick<ResponseCall<unknown>, 'cancel'> & {
    on(event: 'error', listener: () => void): unknown;
  },
>(call: Call): Call {
  call.on('error', () => undefined);
  return call;
}

/**
 * Creates a client that connects at its first call. Throws `configuration_invalid` when the client
 * library rejects the connection string or cannot read one of its files.
 */
export function openHostClient({ connectionString, compression }: HostConnection): HostClient {
  let client: EventStoreDBClient;
  try {
    client = eventstore.EventStoreDBClient.connectionString(connectionString);
  } catch {
    // The client's own message contains the connection string with its password.
    throw new TurnlogError(
      'configuration_invalid',
      'The URL of the event store has an option that its client does not accept, or names a missing file.',
    );
  }
  const internals = client as unknown as ClientInternals;
  widenWindow(internals);
  function callArguments(requiresLeader: boolean): [object, object] {
    const [metadata, options] = internals.callArguments({ requiresLeader }, { deadline: Infinity });
    if (!compression) refuseCompression(metadata);
    return [metadata, options];
  }
  const openStreams = (): Promise<StreamsService> => internals.getGRPCClient(streams, 'turnlog');
  return {
    openBatchAppend: async (requiresLeader) =>
      withErrorListener(
        (await openStreams()).makeBidiStreamRequest(
          BATCH_APPEND_PATH,
          serializeEncoded,
          decodeAppendResponse,
          ...callArguments(requiresLeader),
        ),
      ),
    openRead: async (request, requiresLeader) =>
      withErrorListener(
        (await openStreams()).makeServerStreamRequest(
          READ_PATH,
          serializeRead,
          decodeReadResponse,
          request,
          ...callArguments(requiresLeader),
        ),
      ),
    async readGossip(signal) {
      const service = await internals.getGRPCClient(gossip, 'turnlog');
      const { promise, resolve, reject } = Promise.withResolvers<ClusterInfo>();
      const call = service.read(new sharedPb.Empty(), ...callArguments(false), (error, info) => {
        if (error) reject(error);
        else resolve(info);
      });
      using _cancelling = addAbortListener(signal, () => {
        reject(signal.reason);
        call.cancel();
      });
      return await promise;
    },
    close() {
      internals.getChannel().then(
        (channel) => channel.close(),
        () => undefined,
      );
    },
  };
}
