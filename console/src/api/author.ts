/** Reads what the screens of an author show: offers of servers, calls, frames, tapes, conformance. */
import { useQuery } from '@tanstack/react-query'
import type { Call, Conformance, ConformanceResult, FrameQuery, Offer } from '#contract'
import { request } from './client.ts'
import { readAll } from './lists.ts'

/** The kinds of things that a server offers, as the API calls their lists. */
export type OfferList = 'tools' | 'resources' | 'prompts'

/** Longer lists are cut; the filter finds what is beyond. */
const mostOffers = 10_000

/** What a server offers of one kind. */
export function useOffers(server: string | undefined, list: OfferList, revision: string | undefined) {
  return useQuery({
    queryKey: ['servers', server, list, revision],
    enabled: server !== undefined,
    queryFn: ({ signal }): Promise<readonly Offer[]> =>
      readAll(
        page =>
          request(`GET /servers/:name/${list}`, {
            path: { name: server ?? '' },
            query: { ...page, ...(revision !== undefined && { revision }) },
            signal,
          }),
        mostOffers,
      ),
  })
}

/** One tool, resource, template or prompt, whole. */
export function useOffer(
  server: string | undefined,
  kind: Offer['kind'],
  item: string | undefined,
  revision: string | undefined,
) {
  return useQuery({
    queryKey: ['servers', server, 'offer', kind, item, revision],
    enabled: server !== undefined && item !== undefined,
    queryFn: ({ signal }) =>
      request('GET /servers/:name/offer', {
        path: { name: server ?? '' },
        query: { kind, item: item ?? '', ...(revision !== undefined && { revision }) },
        signal,
      }),
  })
}

/** The revisions at which a server can be called, the newest first. */
export function useRevisions(server: string | undefined) {
  return useQuery({
    queryKey: ['servers', server, 'revisions'],
    enabled: server !== undefined,
    queryFn: async ({ signal }) =>
      (await request('GET /servers/:name/revisions', { path: { name: server ?? '' }, signal })).items,
  })
}

/** A call with its results. News of the stream say when there is more to read; a call that runs is also asked now and then. */
export function useCall(id: string | undefined) {
  return useQuery({
    queryKey: ['calls', id],
    enabled: id !== undefined,
    refetchInterval: ({ state }: { readonly state: { readonly data?: Call | undefined } }) =>
      state.data?.state === 'running' && 2000,
    queryFn: ({ signal }) => request('GET /calls/:id', { path: { id: id ?? '' }, signal }),
  })
}

/** One frame, whole. It never changes but for its answer, so the last one stays until the next is there. */
export function useFrame(n: string | undefined) {
  return useQuery({
    queryKey: ['frames', n],
    enabled: n !== undefined,
    queryFn: ({ signal }) => request('GET /frames/:n', { path: { n: n ?? '' }, signal }),
  })
}

/** More are not marked: the filter is then too wide to help. */
const mostFound = 5000

/** The numbers of frames that hold a text, which only the process can search. */
export function useFoundFrames(text: string) {
  return useQuery({
    queryKey: ['frames', 'text', text],
    enabled: text !== '',
    queryFn: async ({ signal }): Promise<ReadonlySet<number>> => {
      const query: FrameQuery = { text: text.slice(0, 200) }
      const rows = await readAll(page => request('GET /frames', { query: { ...query, ...page }, signal }), mostFound)
      return new Set(rows.map(({ n }) => n))
    },
  })
}

/** A tape with its file and its command. */
export function useTape(name: string | undefined) {
  return useQuery({
    queryKey: ['tapes', name],
    enabled: name !== undefined,
    queryFn: ({ signal }) => request('GET /tapes/:name', { path: { name: name ?? '' }, signal }),
  })
}

/** The last replay of a tape with its differences; null where there was none. */
export function useReplay(name: string | undefined) {
  return useQuery({
    queryKey: ['tapes', name, 'replay'],
    enabled: name !== undefined,
    queryFn: async ({ signal }) => (await request('GET /tapes/:name/replay', { path: { name: name ?? '' }, signal })) ?? null,
  })
}

export const conformanceKey = ['conformance'] as const
export const resultsKey = ['conformance', 'results'] as const

/** The run of conformance as a whole. */
export function useConformance() {
  return useQuery({
    queryKey: conformanceKey,
    refetchInterval: ({ state }: { readonly state: { readonly data?: Conformance | undefined } }) =>
      state.data?.state === 'running' && 2000,
    queryFn: ({ signal }) => request('GET /conformance', { signal }),
  })
}

/** All results of the run, in the order in which they came. */
export function useConformanceResults() {
  return useQuery({
    queryKey: resultsKey,
    queryFn: ({ signal }): Promise<readonly ConformanceResult[]> =>
      readAll(page => request('GET /conformance/results', { query: page, signal })),
  })
}

/** One result with its statements and frames. */
export function useConformanceResult(n: number | undefined, startedAt: number | undefined) {
  return useQuery({
    queryKey: ['conformance', 'results', n, startedAt],
    enabled: n !== undefined,
    queryFn: ({ signal }) => request('GET /conformance/results/:n', { path: { n: String(n) }, signal }),
  })
}
