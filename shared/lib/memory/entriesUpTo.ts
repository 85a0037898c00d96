/**
 * Options of an LRUCache with at most `maxSize` entries. With its option `max`, the library allocates the
 * memory of all of them at once: those of an idle service took 5 MB.
 */
export const entriesUpTo = (maxSize: number) => ({ maxSize, sizeCalculation: () => 1 });
