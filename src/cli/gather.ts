/** All that an iteration gives. Lists of servers are bounded by the client. */
export async function gather<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
