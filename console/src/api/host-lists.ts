/** Reads what an agent host has: conversations and their turns, the inbox, states, explanations. */
import { queryOptions, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { InboxQuery, StateNode } from '#contract'
import { request } from './client.ts'

/** Turns that are read at once: about what fills a few screens. */
const turnPage = 30
const eventPage = 200
const nodePage = 1000

export const hostFacts = queryOptions({ queryKey: ['host'], queryFn: ({ signal }) => request('GET /host', { signal }) })

/** The newest conversations; more would not be found in a list. */
export const conversationList = queryOptions({
  queryKey: ['conversations'],
  queryFn: async ({ signal }) => (await request('GET /conversations', { query: { limit: 500 }, signal })).items,
})

/** Answers that still count. They are stored after they were given, and expire without an event. */
export const grantList = queryOptions({
  queryKey: ['grants'],
  refetchInterval: 10_000,
  queryFn: async ({ signal }) => (await request('GET /grants', { query: { limit: 500 }, signal })).items,
})

export const turnListKey = (conversation: string) => ['turns', conversation] as const
export const turnKey = (conversation: string, seq: number) => ['turn', conversation, seq] as const

/** The turns of a conversation, newest first, as far back as was asked for. */
export function useTurns(conversation: string) {
  return useInfiniteQuery({
    queryKey: turnListKey(conversation),
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      request('GET /conversations/:conversation/turns', {
        path: { conversation },
        query: { limit: turnPage, ...(pageParam && { after: pageParam }) },
        signal,
      }),
    getNextPageParam: page => page.next,
  })
}

/** One turn whole. */
export function useTurn(conversation: string, seq: number | undefined) {
  return useQuery({
    queryKey: turnKey(conversation, seq ?? -1),
    enabled: seq !== undefined,
    queryFn: ({ signal }) =>
      request('GET /conversations/:conversation/turns/:seq', { path: { conversation, seq: String(seq) }, signal }),
  })
}

/** What an undo would do now: never from memory. */
export function useUndoPlan(conversation: string, seq: number) {
  return useQuery({
    queryKey: ['undo', conversation, seq],
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      request('GET /conversations/:conversation/turns/:seq/undo', { path: { conversation, seq: String(seq) }, signal }),
  })
}

/** Events of the inbox, newest first. */
export function useInbox(query: InboxQuery) {
  return useInfiniteQuery({
    queryKey: ['inbox', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      request('GET /inbox', { query: { ...query, limit: eventPage, ...(pageParam && { after: pageParam }) }, signal }),
    getNextPageParam: page => page.next,
  })
}

/** How many events there are, by state. */
export const inboxCounts = queryOptions({
  queryKey: ['inbox', 'counts'],
  queryFn: async ({ signal }) => (await request('GET /inbox', { query: { limit: 1 }, signal })).counts,
})

export function useInboxEvent(server: string, event: string) {
  return useQuery({
    queryKey: ['inbox', server, event],
    queryFn: ({ signal }) => request('GET /inbox/:server/:event', { path: { server, event }, signal }),
  })
}

/** Feature sets with checkpoints. */
export const stateSets = queryOptions({
  queryKey: ['state'],
  queryFn: async ({ signal }) => (await request('GET /state', { query: { limit: 1000 }, signal })).items,
})

/** All checkpoints of a set, newest first: at most some thousand. */
export function useStateTree(server: string, set: string) {
  return useQuery({
    queryKey: ['state', server, set, 'tree'],
    queryFn: async ({ signal }): Promise<readonly StateNode[]> => {
      const nodes: StateNode[] = []
      for (let after: string | undefined; ; ) {
        const query = { limit: nodePage, ...(after !== undefined && { after }) }
        const page = await request('GET /state/:server/:set/tree', { path: { server, set }, query, signal })
        nodes.push(...page.items)
        after = page.next
        if (after === undefined) return nodes
      }
    },
  })
}

/** What a checkpoint holds. It never changes. */
export function useStateContent(server: string, set: string, checkpoint: string | undefined) {
  return useQuery({
    queryKey: ['state', server, set, 'at', checkpoint],
    enabled: checkpoint !== undefined,
    queryFn: ({ signal }) =>
      request('GET /state/:server/:set/at', { path: { server, set }, query: { checkpoint: checkpoint ?? '' }, signal }),
  })
}

/** Everything that belongs to an event or a turn. */
export function useExplanation(id: string | undefined) {
  return useQuery({
    queryKey: ['explain', id],
    enabled: id !== undefined,
    queryFn: ({ signal }) => request('GET /explain/:id', { path: { id: id ?? '' }, signal }),
  })
}
