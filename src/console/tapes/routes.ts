/** The routes of tapes. */
import type { TapeReplayWish, TapeServeWish, TapeWish } from '../contract/tapes.ts'
import { paged, pageOf, slice } from '../query.ts'
import { type ApiRequest, nothing, type Table } from '../route.ts'
import type { Tapes } from './tapes.ts'

const act = { ...nothing, role: 'operator', writes: true } as const
const nameOf = ({ names }: ApiRequest): string => names['name'] ?? ''

/** Makes the routes of a folder of tapes. */
export function tapeRoutes(tapes: Tapes): Table {
  return {
    'GET /tapes': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => slice(await tapes.list(), pageOf(query)),
    },
    'POST /tapes': {
      ...act,
      status: 202,
      body: { 'name?': 'text', 'past?': 'boolean', 'stop?': 'boolean' },
      answer: ({ body, session }) => tapes.start(body as TapeWish, session.by),
    },
    'GET /tapes/:name': { ...nothing, role: 'viewer', answer: request => tapes.detail(nameOf(request)) },
    'POST /tapes/:name/stop': { ...act, answer: request => tapes.stop(nameOf(request)) },
    'GET /tapes/:name/replay': {
      ...nothing,
      role: 'viewer',
      answer: async request => {
        const replay = await tapes.replayed(nameOf(request))
        if (replay === undefined || request.whole) return replay
        const { differences: _, ...rest } = replay
        return rest
      },
    },
    'POST /tapes/:name/replay': {
      ...act,
      status: 202,
      body: { 'server?': 'text', 'ignore?': 'texts' },
      answer: request => tapes.replay(nameOf(request), request.body as TapeReplayWish, request.session.by),
    },
    'POST /tapes/:name/serve': {
      ...act,
      status: 202,
      body: { 'faults?': 'texts', 'seed?': 'number', 'speed?': 'number' },
      answer: request => tapes.serve(nameOf(request), request.body as TapeServeWish, request.session.by),
    },
    'DELETE /tapes/:name/serve': {
      ...act,
      status: 204,
      answer: async request => {
        await tapes.unserve(nameOf(request))
        return undefined
      },
    },
  }
}
