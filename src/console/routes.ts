/** The API as one table: method and path, the role, what is taken, and the function. The compiler holds it against the contract. */
import type { Awaitable } from '../jsonrpc/message.ts'
import type { SharedApprovals } from './approvals.ts'
import type { ConsoleApi, ConsoleRoute } from './contract/api.ts'
import type { Approval, ApprovalAnswer, ApprovalDetail, LikeApprovals } from './contract/approvals.ts'
import type { AuditEntry, AuditQuery } from './contract/audit.ts'
import type { LogQuery } from './contract/log.ts'
import type { Role, Self } from './contract/session.ts'
import type { TrafficQuery } from './contract/traffic.ts'
import { ConsoleFailure } from './failure.ts'
import { hostRoutes } from './host/routes.ts'
import type { Jobs } from './jobs.ts'
import { logLevels } from './log-ring.ts'
import type { OpenSession } from './login.ts'
import { type Members, paged, pageOf, positionOf, slice } from './query.ts'
import { reducedApproval, shortened } from './sources/gateway-approvals.ts'
import type { ConsoleSource } from './sources/source.ts'

/** A request that passed the guard, with its session. */
export interface ApiRequest {
  readonly session: OpenSession
  /** Whether it may see exact arguments and definitions. */
  readonly whole: boolean
  readonly names: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | number>>
  readonly body: Readonly<Record<string, unknown>>
}

/** A route of the table. `any`: every session; `none`: no session is needed. */
export interface Route<Answer = object | undefined> {
  readonly role: Role | 'any' | 'none'
  readonly query: Members
  readonly body: Members
  /** The status of a success. */
  readonly status: 200 | 202 | 204
  /** Whether it changes something, which is then written down. */
  readonly writes: boolean
  /** A success is written down by what it does, so only refusals are noted. */
  readonly notesItself?: true
  answer(request: ApiRequest): Awaitable<Answer>
}

/** What the routes act on. */
export interface RouteParts {
  readonly source: ConsoleSource
  readonly approvals: SharedApprovals
  readonly jobs: Jobs
  readonly fourEyes: boolean
  now(): number
  self(session: OpenSession): Self
  signOut(session: OpenSession): undefined
}

type Table = {
  readonly [Key in keyof ConsoleApi]?: Route<ConsoleApi[Key] extends ConsoleRoute ? ConsoleApi[Key]['answer'] : never>
}

const nothing = { query: {}, body: {}, status: 200, writes: false } as const

/** All routes that this process has. `POST /session` is answered by the listener, because there is no session yet. */
export function routesOf(parts: RouteParts): ReadonlyMap<string, Route> {
  const { observed, agent } = parts.source
  const table: Table = {
    ...sessionRoutes(parts),
    ...serverRoutes(parts),
    ...approvalRoutes(parts),
    ...auditRoutes(parts),
    ...figureRoutes(parts),
    ...(observed !== undefined && observedRoutes(observed)),
    ...(agent !== undefined && hostRoutes(agent)),
  }
  return new Map(Object.entries(table))
}

function sessionRoutes({ self, signOut }: RouteParts): Table {
  return {
    'GET /self': { ...nothing, role: 'any', answer: ({ session }) => self(session) },
    'GET /session': {
      ...nothing,
      role: 'any',
      answer: ({ session: { by, roles, since, until } }) => ({ by, roles, since, until }),
    },
    'DELETE /session': { ...nothing, role: 'any', status: 204, writes: true, answer: ({ session }) => signOut(session) },
  }
}

function serverRoutes({ source }: RouteParts): Table {
  const found = async (name = '') => {
    const server = await source.server(name)
    if (server === undefined)
      throw new ConsoleFailure('NOT_FOUND', 'There is no server of this name.', 'Reload the list of servers.')
    return server
  }
  return {
    'GET /servers': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => slice(await source.servers(), pageOf(query)),
    },
    'GET /servers/:name': { ...nothing, role: 'viewer', answer: ({ names }) => found(names['name']) },
    'POST /servers/:name/retry': {
      ...nothing,
      role: 'operator',
      status: 204,
      writes: true,
      answer: async ({ names }) => {
        source.retry((await found(names['name'])).name)
        return undefined
      },
    },
  }
}

const dayMs = 86_400_000
const likeDays = 30

function approvalRoutes({ source, approvals, fourEyes, now }: RouteParts): Table {
  const visible = (approval: Approval, whole: boolean): Approval => (whole ? approval : reducedApproval(approval))
  /** Earlier answers about the same tool. */
  const like = async ({ server, tool }: Approval): Promise<LikeApprovals | undefined> => {
    if (tool === undefined) return undefined
    const since = now() - likeDays * dayMs
    const count = async (outcome: string): Promise<number> => {
      const { items } = await source.audit({ server, tool, since, outcome }, { after: undefined, limit: 1_000 })
      return items.filter(({ more }) => more?.['approval'] !== undefined).length
    }
    return { yes: await count('approved'), no: await count('refused'), since }
  }
  return {
    'GET /approvals': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query, whole }) => {
        const all = await approvals.list()
        return slice(
          all.map(each => visible(shortened(each), whole)),
          pageOf(query),
        )
      },
    },
    'GET /approvals/:id': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names, whole }): Promise<ApprovalDetail> => {
        const found = await approvals.find(names['id'] ?? '')
        if (found === undefined) throw new ConsoleFailure('NOT_FOUND', 'Nothing waits under this id.', 'Reload the list.')
        const before = await like(found.approval).catch(() => undefined)
        return { ...found, approval: visible(found.approval, whole), ...(before !== undefined && { like: before }) }
      },
    },
    'POST /approvals/:id': {
      ...nothing,
      role: 'approver',
      body: { yes: 'boolean', digest: 'text', 'for?': 'text', 'reason?': 'text', 'content?': 'record' },
      writes: true,
      notesItself: true,
      answer: ({ names, body, session }) =>
        approvals.answer(names['id'] ?? '', body as unknown as ApprovalAnswer, { by: session.by, fourEyes }),
    },
  }
}

const auditFilters = {
  ...{ server: 'text', tool: 'text', client: 'text', subject: 'text', event: 'text', outcome: 'text', rule: 'text' },
  ...{ code: 'text', by: 'text', correlation: 'text', since: 'number', until: 'number', text: 'text' },
} as const satisfies Record<keyof AuditQuery, 'text' | 'number'>

function auditRoutes({ source, jobs }: RouteParts): Table {
  const visible = (entry: AuditEntry, whole: boolean): AuditEntry => {
    if (whole || entry.more?.['arguments'] === undefined) return entry
    const { arguments: _, ...more } = entry.more
    return { ...entry, more }
  }
  return {
    'GET /audit': {
      ...nothing,
      role: 'viewer',
      query: { ...auditFilters, ...paged },
      answer: async ({ query, whole }) => {
        const { after, limit, ...filters } = query
        const page = pageOf({ after, ...(limit !== undefined && { limit }) })
        if (page.after !== undefined) positionOf(page.after)
        const { items, ...rest } = await source.audit(filters as AuditQuery, page)
        return { items: items.map(each => visible(each, whole)), ...rest }
      },
    },
    'GET /audit/proof': {
      ...nothing,
      role: 'viewer',
      answer: () => jobs.last('proof'),
    },
    'POST /audit/proof': {
      ...nothing,
      role: 'operator',
      status: 202,
      writes: true,
      answer: ({ session }) => jobs.start('proof', session.by, (progress, signal) => source.prove(progress, signal)),
    },
  }
}

function figureRoutes({ source }: RouteParts): Table {
  const { clients } = source
  return {
    'GET /budgets': {
      ...nothing,
      role: 'viewer',
      query: paged,
      answer: async ({ query }) => slice(await source.budgets(), pageOf(query)),
    },
    ...(clients !== undefined && {
      'GET /clients': {
        ...nothing,
        role: 'viewer',
        query: paged,
        answer: async ({ query }) => slice(await clients(), pageOf(query)),
      },
    }),
  }
}

function observedRoutes(observed: NonNullable<ConsoleSource['observed']>): Table {
  return {
    'GET /log': {
      ...nothing,
      role: 'viewer',
      query: { level: logLevels, server: 'text', event: 'text', text: 'text', ...paged },
      answer: ({ query }) => {
        const { after, limit, ...filters } = query
        const page = pageOf({ after, ...(limit !== undefined && { limit }) })
        const before = page.after === undefined ? Number.POSITIVE_INFINITY : positionOf(page.after)
        const found = observed.log(filters as LogQuery, before, page.limit + 1)
        const items = found.slice(0, page.limit)
        const last = items.at(-1)
        return found.length > items.length && last !== undefined ? { items, next: String(last.n) } : { items }
      },
    },
    'GET /faults': { ...nothing, role: 'viewer', query: paged, answer: ({ query }) => slice(observed.faults(), pageOf(query)) },
    'GET /traffic': {
      ...nothing,
      role: 'viewer',
      query: { by: ['server', 'tool', 'client', 'each'], since: 'number', step: 'number' },
      answer: ({ query }) => ({ items: observed.traffic(query as TrafficQuery) }),
    },
  }
}

/** A route that a request fits, and the names in its path; the methods that the path takes, where it takes another one. */
export function findRoute(
  routes: ReadonlyMap<string, Route>,
  method: string,
  path: string,
): { readonly key: string; readonly route: Route; readonly names: Readonly<Record<string, string>> } | undefined {
  let isOther = false
  for (const [key, route] of routes) {
    const [verb, pattern = ''] = key.split(' ')
    const names = namesIn(pattern, path)
    if (names === undefined) continue
    if (verb === method) return { key, route, names }
    isOther = true
  }
  if (isOther)
    throw new ConsoleFailure('METHOD_REFUSED', 'The path does not take this method.', 'See the routes of the contract.')
  return undefined
}

function namesIn(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  const names: Record<string, string> = {}
  for (const [i, part] of wanted.entries()) {
    const said = given[i] ?? ''
    if (!part.startsWith(':')) {
      if (part !== said) return undefined
      continue
    }
    try {
      names[part.slice(1)] = decodeURIComponent(said)
    } catch {
      return undefined
    }
    if (said === '') return undefined
  }
  return names
}
