/** The routes of a playground: what the server offers, and calls. */
import type { Call, CallQuery, CallWish, CompleteWish, OfferItemQuery, OfferQuery, RevisionRow } from '../contract/calls.ts'
import type { List } from '../contract/problem.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pagedQuery, slice } from '../query.ts'
import { type ApiRequest, nothing, type Route, type Table } from '../route.ts'
import { reducedCall } from './calls.ts'
import type { OfferList } from './offers.ts'
import type { Playground } from './playground.ts'

/** Makes the routes of what is offered. */
export function offerRoutes(playground: Playground): Table {
  const listed = (list: OfferList) =>
    ({
      ...nothing,
      role: 'viewer',
      query: { revision: 'text', text: 'text', ...paged },
      answer: async ({ names, query }: ApiRequest) => {
        playground.serverNamed(names['name'])
        const { filters, page } = pagedQuery<OfferQuery>(query)
        return slice(await asked(playground, () => playground.offers.list(list, filters)), page)
      },
    }) as const
  return {
    'GET /servers/:name/tools': listed('tools'),
    'GET /servers/:name/resources': listed('resources'),
    'GET /servers/:name/prompts': listed('prompts'),
    'GET /servers/:name/offer': {
      ...nothing,
      role: 'viewer',
      query: { kind: ['tool', 'resource', 'template', 'prompt'], item: 'long', revision: 'text' },
      answer: ({ names, query }) => {
        playground.serverNamed(names['name'])
        for (const name of ['kind', 'item'])
          if (query[name] === undefined)
            throw new ConsoleFailure('INVALID_INPUT', `The parameter ${name} is missing.`, 'Give kind and item.', {
              member: name,
            })
        return asked(playground, () => playground.offers.detail(query as unknown as OfferItemQuery))
      },
    },
    'GET /servers/:name/revisions': {
      ...nothing,
      role: 'viewer',
      answer: ({ names }): List<RevisionRow> => ({ items: playground.serverNamed(names['name']).known }),
    },
    'POST /complete': {
      ...nothing,
      role: 'operator',
      writes: true,
      // It happens while somebody types.
      notesItself: true,
      body: {
        ...{ 'server?': 'text', 'prompt?': 'text', 'template?': 'long', argument: 'text', value: 'long' },
        ...{ 'context?': 'record', 'revision?': 'text' },
      },
      answer: ({ body }) => asked(playground, () => playground.complete(body as unknown as CompleteWish)),
    },
  }
}

/** Makes the routes of calls. */
export function callRoutes(playground: Playground): Table {
  const { calls } = playground
  const found = (id = '', whole = true): Call => {
    const call = calls.find(id, whole)
    if (call === undefined)
      throw new ConsoleFailure('NOT_FOUND', 'There is no such call.', 'It is no longer stored. Make it again.')
    return call
  }
  const cancel: Route<undefined> = {
    ...nothing,
    role: 'operator',
    status: 204,
    writes: true,
    answer: ({ names }) => {
      calls.cancel(found(names['id']).id)
      return undefined
    },
  }
  return {
    'GET /calls': {
      ...nothing,
      role: 'viewer',
      query: { server: 'text', kind: ['tool', 'resource', 'prompt'], name: 'long', ...paged },
      answer: ({ query, whole }) => {
        const { filters, page } = pagedQuery<CallQuery>(query)
        const found = calls.list(filters)
        return slice(whole ? found : found.map(reducedCall), page)
      },
    },
    'POST /calls': {
      ...nothing,
      role: 'operator',
      status: 202,
      writes: true,
      notesItself: true,
      body: {
        ...{ 'server?': 'text', 'tool?': 'text', 'uri?': 'long', 'template?': 'long', 'prompt?': 'text' },
        ...{ 'arguments?': 'record', 'revisions?': 'texts', 'meta?': 'record', 'timeout?': 'number', 'task?': 'boolean' },
      },
      answer: ({ body, session }) => {
        const wish = body as CallWish
        return calls.start(playground.serverNamed(wish.server), wish, session.by)
      },
    },
    'GET /calls/:id': { ...nothing, role: 'viewer', answer: ({ names, whole }) => found(names['id'], whole) },
    'GET /calls/:id/results/:revision': {
      ...nothing,
      role: 'viewer',
      answer: ({ names, whole }) => {
        const { id } = found(names['id'])
        if (!whole) throw new ConsoleFailure('ROLE_REQUIRED', 'Results need the role operator.', 'Open a link that has it.')
        const text = calls.result(id, names['revision'] ?? '')
        if (text === undefined)
          throw new ConsoleFailure('NOT_FOUND', 'There is no result.', 'It is no longer stored, or there was none. Call again.')
        return { text }
      },
    },
    'DELETE /calls/:id': cancel,
  }
}

/** Asks the server; what it refuses or fails is told with its words, which are for whoever tries it out. */
async function asked<T>({ traffic }: Playground, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ConsoleFailure) throw error
    const said = traffic.redaction.text(error instanceof Error ? error.message : String(error)).slice(0, 1_000)
    throw new ConsoleFailure(
      'UNAVAILABLE',
      `The server cannot be asked: ${said}`,
      'See Traffic and Logs, then try again.',
      undefined,
      {
        cause: error,
      },
    )
  }
}
