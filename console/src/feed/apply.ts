/**
 * What events do to what was read: small lists are changed in place, long ones are marked as stale, at most once a second. Lists are
 * the truth; after `lost`, or another start of the process, all are read again.
 */
import type { QueryClient } from '@tanstack/react-query'
import type { Approval, ApprovalDetail, Budget, ConsoleEvent, ServerRow } from '#contract'
import { approvalList, budgetList, lastProof, serverList } from '../api/lists.ts'
import { applyHostEvent } from './apply-host.ts'
import { forgetLiveTurns } from './live-turns.ts'

const staleMs = 1000

/** A function that applies events to the lists of `client`. */
export function applyTo(client: QueryClient): (events: readonly ConsoleEvent[]) => void {
  let start: string | undefined
  const marked = new Set<string>()
  const mark = (name: string) => {
    if (marked.has(name)) return
    marked.add(name)
    setTimeout(() => {
      marked.delete(name)
      // Of approvals only the list: one that was just answered elsewhere is in neither place for a moment.
      void client.invalidateQueries({ queryKey: [name], exact: name === 'approvals' })
    }, staleMs)
  }
  const change = <T>(queryKey: readonly unknown[], edit: (items: readonly T[]) => readonly T[]) =>
    client.setQueryData<readonly T[]>(queryKey, items => items && edit(items))

  const apply = (event: ConsoleEvent) => {
    switch (event.event) {
      case 'hello':
        // At the first one, too: what happened between the first lists and the stream is in neither.
        if (start !== event.data.self.start) {
          void client.invalidateQueries()
          forgetLiveTurns()
        }
        start = event.data.self.start
        client.setQueryData(['self'], event.data.self)
        return
      case 'lost':
        void client.invalidateQueries()
        forgetLiveTurns()
        return
      case 'server': {
        const row = event.data
        change<ServerRow>(serverList.queryKey, rows => {
          if (row.gone) return rows.filter(({ name }) => name !== row.name)
          return rows.some(({ name }) => name === row.name)
            ? rows.map(each => (each.name === row.name ? row : each))
            : [...rows, row]
        })
        mark('servers')
        return
      }
      case 'approval': {
        const approval = event.data
        // Always at the end: nothing may move under the pointer.
        change<Approval>(approvalList.queryKey, all => [...all.filter(({ id }) => id !== approval.id), approval])
        mark('approvals')
        return
      }
      case 'answered':
        change<Approval>(approvalList.queryKey, all => all.filter(({ id }) => id !== event.data.id))
        client.setQueryData<ApprovalDetail>(['approvals', event.data.id], shown => shown && { ...shown, answered: event.data })
        mark('grants')
        return
      case 'spent':
        change<Budget>(budgetList.queryKey, all => all.map(each => (each.name === event.data.name ? event.data : each)))
        return
      case 'job':
        client.setQueryData(lastProof.queryKey, event.data)
        return
      case 'audit':
      case 'log':
        mark(event.event)
        mark('clients')
        return
      case 'fault':
        mark('faults')
        return
      case 'traffic':
        return
      case 'turn':
      case 'part':
      case 'span':
      case 'inbox':
      case 'checkpoint':
      case 'head':
        applyHostEvent(client, event, mark)
        return
    }
  }
  return events => {
    for (const event of events) apply(event)
  }
}
