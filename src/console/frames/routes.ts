/** The routes of traffic: frames, one frame, sending one again, and connections. */
import type { FrameAgain, FrameKind, FrameQuery, FrameStatus, FrameWay } from '../contract/frames.ts'
import { ConsoleFailure } from '../failure.ts'
import { type MemberKind, paged, pagedQuery, pageOf, slice, sliceNewest } from '../query.ts'
import { nothing, type Table } from '../route.ts'
import type { Traffic } from './traffic.ts'

/** Frames that can be listed; without `again` none can be sent. */
export type ShownFrames = Pick<Traffic, 'ring' | 'detail' | 'connections'> & Partial<Pick<Traffic, 'again'>>

const ways: readonly FrameWay[] = ['out', 'in']
const kinds: readonly FrameKind[] = [
  ...(['request', 'result', 'error', 'notification', 'batch', 'invalid', 'http', 'open', 'closed'] as const),
]
const statuses: readonly FrameStatus[] = ['open', 'ok', 'error', 'tool-error', 'asks']

const filters: Readonly<Record<keyof FrameQuery, MemberKind>> = {
  ...{ server: 'text', connection: 'text', method: 'text', id: 'text', way: ways, kind: kinds, status: statuses },
  ...{ ms: 'number', since: 'number', until: 'number', call: 'text', text: 'text' },
}

/** Makes the routes of traffic. */
export function frameRoutes(traffic: ShownFrames): Table {
  return {
    'GET /frames': {
      ...nothing,
      role: 'viewer',
      query: { ...filters, ...paged },
      answer: ({ query, whole }) => {
        const { filters: wanted, page } = pagedQuery<FrameQuery>(query)
        return sliceNewest(page, (before, limit) => traffic.ring.find(wanted, whole, before, limit))
      },
    },
    'GET /frames/:n': {
      ...nothing,
      role: 'viewer',
      answer: ({ names, whole }) => {
        const found = traffic.detail(numberIn(names), whole)
        if (found === undefined)
          throw new ConsoleFailure('NOT_FOUND', 'There is no such frame.', 'It is no longer stored. Choose a newer one.')
        return found
      },
    },
    ...(traffic.again !== undefined && againRoute(traffic as Traffic)),
    'GET /connections': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: ({ query }) => slice(traffic.connections(), pageOf(query)),
    },
  }
}

function againRoute(traffic: Traffic): Table {
  return {
    'POST /frames/:n/again': {
      ...nothing,
      role: 'operator',
      status: 202,
      writes: true,
      body: { 'text?': 'long', 'connection?': 'text' },
      answer: ({ names, body }) => traffic.again(numberIn(names), body as FrameAgain),
    },
  }
}

function numberIn(names: Readonly<Record<string, string>>): number {
  return /^\d{1,15}$/.test(names['n'] ?? '') ? Number(names['n']) : -1
}
