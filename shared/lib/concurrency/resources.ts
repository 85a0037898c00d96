/** The limit of a bounded resource and its current use, in one unit. */
export interface Usage {
  limit: number;
  used: number;
}

/** The use of a bounded resource. The limit is `Infinity` where there is none. */
export interface ResourceUsage {
  /** Permits, connections or entries. */
  count?: Usage;
  bytes?: Usage;
  /** The number of requests that wait for it. */
  waiting?: number;
  /** Requests rejected so far, by whose limit was reached. */
  rejected?: Readonly<Record<'account' | 'process', number>>;
}

/** A resource that reports its use. */
export interface BoundedResource {
  usage(): ResourceUsage;
}

const registered: [name: string, resource: BoundedResource][] = [];

/**
 * Adds a resource that lasts as long as the process to its metrics, and returns it. Resources of the
 * same name are added up, such as the calls to several servers.
 */
export function registerResource<Resource extends BoundedResource>(
  name: string,
  resource: Resource,
): Resource {
  registered.push([name, resource]);
  return resource;
}

/** The resources of this process with their names, which no client chooses. */
export const registeredResources = (): readonly (readonly [string, BoundedResource])[] =>
  registered;
