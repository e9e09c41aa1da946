/** The routes of conformance. */
import type { ConformanceExportQuery, ConformanceQuery, ConformanceStatus, ConformanceWish } from '../contract/conformance.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pagedQuery, slice } from '../query.ts'
import { nothing, type Route, type Table } from '../route.ts'
import type { ConformanceRun } from './conformance-run.ts'

const statuses: readonly ConformanceStatus[] = ['passed', 'failed', 'skipped', 'error']

/** Makes the routes of the runs of conformance. */
export function conformanceRoutes(run: ConformanceRun): Table {
  const stop: Route<undefined> = {
    ...nothing,
    role: 'operator',
    status: 204,
    writes: true,
    answer: () => {
      run.stop()
      return undefined
    },
  }
  return {
    'GET /conformance': { ...nothing, role: 'viewer', answer: () => run.now },
    'GET /conformance/results': {
      ...nothing,
      role: 'viewer',
      query: { revision: 'text', carrier: 'text', status: statuses, text: 'text', ...paged },
      answer: ({ query }) => {
        const { filters, page } = pagedQuery<ConformanceQuery>(query)
        return slice(run.results(filters), page)
      },
    },
    'GET /conformance/results/:n': {
      ...nothing,
      role: 'viewer',
      answer: ({ names, whole }) => {
        const found = run.detail(Number(names['n']), whole)
        if (found === undefined) throw new ConsoleFailure('NOT_FOUND', 'There is no such result.', 'Reload the list of results.')
        return found
      },
    },
    'GET /conformance/export': {
      ...nothing,
      role: 'viewer',
      query: { as: ['json', 'junit', 'badge'] },
      answer: ({ query, whole }) => {
        if (!whole) throw new ConsoleFailure('ROLE_REQUIRED', 'The report needs the role operator.', 'Open a link that has it.')
        const found = run.export((query as ConformanceExportQuery).as ?? 'json')
        if (found === undefined) throw new ConsoleFailure('NOT_FOUND', 'No run has ended yet.', 'Wait until it ends.')
        return found
      },
    },
    'POST /conformance': {
      ...nothing,
      role: 'operator',
      status: 202,
      writes: true,
      body: { 'revisions?': 'texts', 'carriers?': 'texts', 'only?': 'text', 'allowWrites?': 'boolean' },
      answer: ({ body, session }) => run.start(body as ConformanceWish, session.by),
    },
    'DELETE /conformance': stop,
  }
}
