/** The routes of explanations, of answers that still count, and of what was spent. */
import type { StoredApproval } from '../../policy/approvals/approvals.ts'
import { ConsoleFailure } from '../failure.ts'
import { paged, pageOf, slice } from '../query.ts'
import type { AgentSource } from './agent.ts'
import { explanationOf } from './explanation.ts'
import { type HostTable, nothing } from './table.ts'

/** The routes of explanations, grants and spending. */
export function grantRoutes({ host }: AgentSource): HostTable {
  return {
    'GET /explain/:id': {
      ...nothing,
      role: 'viewer',
      answer: async ({ names }) => {
        const id = names['id'] ?? ''
        const found = await host.explain(id)
        if (found.notes.length > 0) return explanationOf(found)
        throw new ConsoleFailure(
          'NOT_FOUND',
          'The audit log has nothing about this id.',
          'The chat shows the ids of turns, the inbox those of events, and the audit log both.',
        )
      },
    },
    'GET /grants': {
      ...nothing,
      role: 'viewer',
      query: { server: 'text', ...paged },
      answer: async ({ query }) => {
        const { server, after, limit } = query
        const servers = server === undefined ? host.servers.map(({ name }) => name) : [String(server)]
        const all = (await Promise.all(servers.map(name => host.policy.grants(name)))).flat()
        return slice(all.map(grantOf), pageOf({ after, ...(limit !== undefined && { limit }) }))
      },
    },
    'DELETE /grants/:server/:id': {
      ...nothing,
      role: 'approver',
      status: 204,
      writes: true,
      answer: async ({ names }) => {
        if (await host.policy.revoke(names['server'] ?? '', names['id'] ?? '')) return undefined
        throw new ConsoleFailure('NOT_FOUND', 'There is no such answer.', 'It has ended. Reload the list.')
      },
    },
    'GET /spent': {
      ...nothing,
      role: 'viewer',
      query: { from: 'text', to: 'text', ...paged },
      answer: async ({ query }) => {
        const { from, to, after, limit } = query
        const days = { ...(from !== undefined && { from: day(from, 'from') }), ...(to !== undefined && { to: day(to, 'to') }) }
        const rows = (await host.spent(days)).map(({ server, featureSet, tokens, money, requests }) => ({
          ...{ server, featureSet, tokens, money, requests },
        }))
        return slice(rows, pageOf({ after, ...(limit !== undefined && { limit }) }))
      },
    },
  }
}

function grantOf({ id, server, effect, kind, featureSet, tool, digest, covers, expires }: StoredApproval) {
  return {
    ...{ id, server, effect, kind, expires },
    ...(featureSet !== undefined && { featureSet }),
    ...(tool !== undefined && { tool }),
    ...(digest !== undefined && { digest }),
    ...(covers !== undefined && { covers }),
  }
}

function day(value: string | number, member: string): string {
  const text = String(value)
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return text
  throw new ConsoleFailure('INVALID_INPUT', `${member} is not a day.`, 'Write it as 2026-01-31.', { member })
}
