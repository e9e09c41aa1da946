/**
 * What events do to what was read: small lists are changed in place, long ones are marked as stale, at most once a second. Lists are
 * the truth; after `lost`, or another start of the process, all are read again.
 */
import type { QueryClient } from '@tanstack/react-query'
import type { Approval, ApprovalDetail, Budget, Call, ConformanceResult, ConsoleEvent, ServerRow, TapeRow } from '#contract'
import { conformanceKey, resultsKey } from '../api/author.ts'
import { approvalList, budgetList, lastProof, serverList, tapeList } from '../api/lists.ts'
import { applyHostEvent } from './apply-host.ts'
import { forgetFrames, readFrames, takeFrames } from './frames.ts'
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
          if (start !== undefined) forgetFrames()
          forgetLiveTurns()
        }
        start = event.data.self.start
        client.setQueryData(['self'], event.data.self)
        return
      case 'lost':
        void client.invalidateQueries()
        void readFrames()
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
      case 'frames':
        takeFrames(event.data.rows, event.data.skipped)
        return
      case 'connection':
        mark('connections')
        return
      case 'call':
        takeCall(client, event.data)
        return
      case 'tape': {
        const tape = event.data
        change<TapeRow>(tapeList.queryKey, all => [...all.filter(({ name }) => name !== tape.name), tape].sort(byName))
        if (!tape.recording) mark('tapes')
        return
      }
      case 'conformance':
        client.setQueryData(conformanceKey, event.data)
        if (event.data.state !== 'running') mark('conformance')
        return
      case 'result': {
        const result = event.data
        // The first one begins another run.
        change<ConformanceResult>(resultsKey, all =>
          result.n === 1 ? [result] : [...all.filter(({ n }) => n < result.n), result],
        )
        return
      }
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

const byName = (a: TapeRow, b: TapeRow) => (a.name < b.name ? -1 : 1)

/** News of a call come without results: what was read stays, and is read again once another run has ended. */
function takeCall(client: QueryClient, call: Call): void {
  const queryKey = ['calls', call.id]
  const shown = client.getQueryData<Call>(queryKey)
  if (shown === undefined) return
  const before = (revision: string) => shown.runs.find(run => run.revision === revision)
  client.setQueryData<Call>(queryKey, { ...shown, ...call, runs: call.runs.map(run => ({ ...before(run.revision), ...run })) })
  const ended = call.runs.some(run => run.state === 'done' && before(run.revision)?.state !== 'done')
  if (ended || call.state !== shown.state) void client.invalidateQueries({ queryKey, exact: true })
}
