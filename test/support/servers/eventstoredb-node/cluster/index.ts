import type grpc from '@grpc/grpc-js';
import { openAccess } from '../access.ts';
import { handleHttp } from '../http.ts';
import { createListener } from '../listener.ts';
import { openLog } from '../log.ts';
import { createNode, type Member } from '../node.ts';
import { addServices } from '../services.ts';
import { serverVersion } from '../versions.ts';
import { joinCluster } from './member.ts';

interface ClusterMemberOptions {
  /** Where this member keeps its log. */
  folder: string;
  /** Its place among the members. */
  index: number;
  /** Where the members, in their order, listen for clients. */
  ports: readonly number[];
  /** And where they listen for each other. */
  replicationPorts: readonly number[];
  /** The version of a server to pass for. */
  version?: string;
}

interface ClusterMember {
  /** `esdb://…` of this node alone. */
  connectionString: string;
  dropConnections: () => void;
  resign: () => void;
  /**
   * Cuts the node off from the other members, or joins it to them again; its clients stay
   * connected.
   */
  isolate: (apart: boolean) => void;
  close: () => Promise<void>;
}

/** One member of a cluster, each of which is a process of its own with a log of its own. */
export async function startClusterMember(options: ClusterMemberOptions): Promise<ClusterMember> {
  const { folder, index, ports, replicationPorts } = options;
  const log = openLog(folder, { replicated: true });
  const members = ports.map((port, member): Member => {
    const isSelf = member === index;
    const state = isSelf ? 'unknown' : 'follower';
    return { instanceId: crypto.randomUUID(), host: '127.0.0.1', port, state, alive: isSelf };
  });
  const self = members[index];
  if (!self) throw new Error(`there is no member ${index} among ${ports.length}`);
  const cluster = await joinCluster({ log, members, self: index, ports: replicationPorts });
  const version = serverVersion(options.version);
  const context = {
    log,
    members: () => members,
    perform: cluster.perform,
    access: openAccess,
    version,
  };
  const node = createNode(
    context,
    () => self,
    () => listener.dropConnections(),
  );
  const register = (server: grpc.Server): void => addServices(server, node);
  const compression = version.compresses && { onCompressed: () => undefined };
  const services = { register, onHttp: handleHttp(openAccess), ...compression };
  const listener = createListener(services, false);
  await listener.listen(self.port);
  return {
    connectionString: `esdb://${self.host}:${self.port}?tls=false`,
    dropConnections: listener.dropConnections,
    resign: cluster.resign,
    isolate: cluster.isolate,
    async close() {
      cluster.leave();
      await listener.stop();
      log.close();
    },
  };
}
