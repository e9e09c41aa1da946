/** Reads lists of the process. Events of the stream change what was read, or mark it as stale. */
import { queryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { AuditQuery, ConsoleApi, Job, List, LogQuery, PageQuery, TrafficQuery } from '#contract'
import { request } from './client.ts'

/** How many rows of a long list are read at once. */
const pageSize = 200

type Listed<Route extends keyof ConsoleApi> = ConsoleApi[Route]['answer'] extends List<infer T> ? T : never

type WholeList =
  | 'GET /servers'
  | 'GET /approvals'
  | 'GET /budgets'
  | 'GET /clients'
  | 'GET /faults'
  | 'GET /connections'
  | 'GET /tapes'

/** A whole list: for those that are short by their nature. */
function whole<Route extends WholeList>(route: Route) {
  return queryOptions({
    queryKey: [route.slice('GET /'.length)],
    queryFn: ({ signal }): Promise<readonly Listed<Route>[]> =>
      readAll(query => request(route, { query: query as never, signal }) as Promise<List<Listed<Route>>>),
  })
}

/** All items of a list, or the first `most` of them. */
export async function readAll<T>(
  read: (page: PageQuery) => Promise<List<T>>,
  most = Number.POSITIVE_INFINITY,
): Promise<readonly T[]> {
  const items: T[] = []
  for (let after: string | undefined; ; ) {
    const page = await read({ limit: 1000, ...(after !== undefined && { after }) })
    items.push(...page.items)
    after = page.next
    if (after === undefined || items.length >= most) return items
  }
}

export const serverList = whole('GET /servers')
export const approvalList = whole('GET /approvals')
export const budgetList = whole('GET /budgets')
export const clientList = whole('GET /clients')
export const faultList = whole('GET /faults')
export const connectionList = whole('GET /connections')
export const tapeList = whole('GET /tapes')

/** One server with what it offers. */
export function useServer(name: string | undefined) {
  return useQuery({
    queryKey: ['servers', name],
    enabled: name !== undefined,
    queryFn: ({ signal }) => request('GET /servers/:name', { path: { name: name ?? '' }, signal }),
  })
}

/** One approval, also when it has been answered. */
export function useApproval(id: string | undefined) {
  return useQuery({
    queryKey: ['approvals', id],
    enabled: id !== undefined,
    queryFn: ({ signal }) => request('GET /approvals/:id', { path: { id: id ?? '' }, signal }),
  })
}

/** Calls by window of time. */
export function useTraffic(query: TrafficQuery & { readonly last: number }) {
  const { last, ...rest } = query
  return useQuery({
    queryKey: ['traffic', query],
    refetchInterval: 10_000,
    queryFn: ({ signal }) => request('GET /traffic', { query: { ...rest, since: Date.now() - last }, signal }),
  })
}

/**
 * Entries are announced before they are stored, so an announcement is not enough: the first pages are read again every few seconds. Who has
 * scrolled far back is not looking at the newest.
 */
const repeatMs = 5000
const repeatedPages = 2
const repeat = ({ state }: { readonly state: { readonly data?: { readonly pages: readonly unknown[] } | undefined } }) =>
  (state.data?.pages.length ?? 0) <= repeatedPages && repeatMs

/** Audit entries, newest first, as far back as was scrolled. */
export function useAudit(query: AuditQuery) {
  return useInfiniteQuery({
    queryKey: ['audit', query],
    refetchInterval: repeat,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      request('GET /audit', { query: { ...query, limit: pageSize, ...(pageParam && { after: pageParam }) }, signal }),
    getNextPageParam: page => page.next,
  })
}

/** Log lines, newest first, as far back as was scrolled. */
export function useLog(query: LogQuery) {
  return useInfiniteQuery({
    queryKey: ['log', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      request('GET /log', { query: { ...query, limit: pageSize, ...(pageParam && { after: pageParam }) }, signal }),
    getNextPageParam: page => page.next,
  })
}

/** The last proof of the audit chain; null where none was asked for. */
export const lastProof = queryOptions({
  queryKey: ['proof'],
  // Its end is announced once; a page that misses it shall not wait for ever.
  refetchInterval: ({ state }: { readonly state: { readonly data?: Job | null | undefined } }) =>
    state.data?.state === 'running' && 1000,
  queryFn: async ({ signal }) => (await request('GET /audit/proof', { signal })) ?? null,
})
